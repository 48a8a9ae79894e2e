// A register full of numbers. Arithmetic and comparisons work lane by lane, and `mask ? a : b`
// chooses lane by lane, so code without branches reads like that of one slot. Included by kernels,
// inside the namespace of their instruction set.
using Floats = float __attribute__((vector_size(HEADWISE_BYTES)));
using Ints = std::int32_t __attribute__((vector_size(HEADWISE_BYTES)));
using Doubles = double __attribute__((vector_size(HEADWISE_BYTES)));
using Longs = long long __attribute__((vector_size(HEADWISE_BYTES)));
inline constexpr int kFloats = HEADWISE_BYTES / 4, kDoubles = HEADWISE_BYTES / 8;

template <class V, class T>
[[nodiscard]] inline V load(const T* from) noexcept {
  V v;
  __builtin_memcpy(&v, from, sizeof(V));
  return v;
}
template <class V, class T>
inline void store(T* to, V v) noexcept {
  __builtin_memcpy(to, &v, sizeof(V));
}
[[nodiscard]] inline Floats floats(float value) noexcept { return Floats{} + value; }
[[nodiscard]] inline Doubles doubles(double value) noexcept { return Doubles{} + value; }
[[nodiscard]] inline Floats sqrt(Floats v) noexcept {
  for (int i = 0; i < kFloats; ++i) v[i] = __builtin_sqrtf(v[i]);
  return v;
}
[[nodiscard]] inline Doubles abs(Doubles v) noexcept { return v < 0.0 ? -v : v; }
[[nodiscard]] inline Doubles clamp(Doubles v, Doubles low, Doubles high) noexcept {
  const Doubles raised = v > low ? v : low;  // written so that one instruction does it
  return raised < high ? raised : high;
}
// Whether a mask is set in some lane.
[[nodiscard]] inline bool any(Longs mask) noexcept {
#if HEADWISE_BYTES == 64
  return __builtin_ia32_cvtq2mask512(mask) != 0;
#elif HEADWISE_BYTES == 32
  return __builtin_ia32_movmskpd256(Doubles(mask)) != 0;
#else
  long long bits = 0;
  for (int i = 0; i < kDoubles; ++i) bits |= mask[i];
  return bits != 0;
#endif
}

// Philox for as many slots as a register has 64-bit lanes: word d of slot i goes to words[d][i]. The
// same words as philox() in core/rng.h.
template <int W>
inline void philox_lanes(const Slots<W>& slots, int lane, Purpose purpose, std::uint32_t draw,
                         std::uint32_t (&words)[4][W]) noexcept {
  using Wide = unsigned long long __attribute__((vector_size(HEADWISE_BYTES)));
  const Wide low = Wide{} + 0xFFFFFFFFull;
  Wide a, b, c = Wide{} + static_cast<unsigned>(purpose), d = Wide{} + draw, key0, key1;
  for (int i = 0; i < kDoubles; ++i) {
    a[i] = slots.lane[lane + i];
    b[i] = slots.clock[lane + i];
    key0[i] = slots.seed[lane + i] & 0xFFFFFFFFull;
    key1[i] = slots.seed[lane + i] >> 32;
  }
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const Wide product0 = a * 0xD2511F53ull, product1 = c * 0xCD9E8D57ull;
    a = ((product1 >> 32) ^ b ^ key0) & low;
    c = ((product0 >> 32) ^ d ^ key1) & low;
    b = product1 & low;
    d = product0 & low;
    key0 += 0x9E3779B9ull;
    key1 += 0xBB67AE85ull;
  }
  for (int i = 0; i < kDoubles; ++i) {
    words[0][lane + i] = static_cast<std::uint32_t>(a[i]);
    words[1][lane + i] = static_cast<std::uint32_t>(b[i]);
    words[2][lane + i] = static_cast<std::uint32_t>(c[i]);
    words[3][lane + i] = static_cast<std::uint32_t>(d[i]);
  }
}
