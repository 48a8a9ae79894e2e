// Sixteen float32 numbers at a time, on any processor: as one register, two or four.
//
// All arithmetic on them is element by element and rounds the same everywhere, so whoever sums over
// the sixteen in a fixed order gets the same bits on every instruction set. Multiply-adds are fused
// where `fma` is written and nowhere else (-ffp-contract=off).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__FMA__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#define HEADWISE_INLINE inline __attribute__((always_inline))
#define HEADWISE_PARTS _Pragma("GCC unroll 4") for (int i = 0; i < kParts; ++i)

namespace headwise::ops {

// The registers of this build.
#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kWide = 16;
constexpr int kParts = kWide / kLanes;

using Vec = float __attribute__((vector_size(4 * kLanes)));
using IntVec = std::int32_t __attribute__((vector_size(4 * kLanes)));
using LooseInt = std::int32_t __attribute__((may_alias));
using BitVec = std::uint32_t __attribute__((vector_size(4 * kLanes)));  // wraps, whatever is in it
using LooseVec = float __attribute__((vector_size(4 * kLanes), aligned(4), may_alias));

HEADWISE_INLINE Vec load_vec(const float* p) { return *reinterpret_cast<const LooseVec*>(p); }
HEADWISE_INLINE void store_vec(float* p, Vec x) { *reinterpret_cast<LooseVec*>(p) = x; }
HEADWISE_INLINE Vec vec_of(float x) { return Vec{} + x; }
// The number at a place in all lanes, whatever its bits mean.
HEADWISE_INLINE Vec every(const float* p) {
  return std::bit_cast<Vec>(IntVec{} + *reinterpret_cast<const LooseInt*>(p));
}

// a * b + c, rounded once.
#if defined(__AVX512F__)
HEADWISE_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
#elif defined(__AVX2__) && defined(__FMA__)
HEADWISE_INLINE Vec fma(Vec a, Vec b, Vec c) { return _mm256_fmadd_ps(a, b, c); }
#elif defined(__ARM_NEON) && defined(__aarch64__)
HEADWISE_INLINE Vec fma(Vec a, Vec b, Vec c) { return vfmaq_f32(c, a, b); }
#else
// Without the instruction: the sum in double, rounded to odd, which a second rounding to float32
// cannot spoil.
__attribute__((noinline)) inline Vec fma(Vec a, Vec b, Vec c) {
  using Doubles = double __attribute__((vector_size(8 * kLanes)));
  using Bits = std::int64_t __attribute__((vector_size(8 * kLanes)));
  const Doubles product = __builtin_convertvector(a, Doubles) * __builtin_convertvector(b, Doubles);
  const Doubles other = __builtin_convertvector(c, Doubles), sum = product + other;
  const Doubles part = sum - product, rest = (product - (sum - part)) + (other - part);
  Bits bits = std::bit_cast<Bits>(sum);
  const Bits inexact = (rest != 0.0) & (sum - sum == 0.0) & ((bits & 1) == 0);
  const Bits same_sign = (rest > 0.0) == (sum > 0.0);
  bits += inexact & (-1 - 2 * same_sign);
  return __builtin_convertvector(std::bit_cast<Doubles>(bits), Vec);
}
#endif
HEADWISE_INLINE Vec sqrt(Vec x) {
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
}

// ---- sixteen of them -----------------------------------------------------------------------

struct Wide {
  Vec part[kParts];
  HEADWISE_INLINE Wide() = default;
  HEADWISE_INLINE Wide(float x) { HEADWISE_PARTS part[i] = vec_of(x); }
  HEADWISE_INLINE float& operator[](int k) { return reinterpret_cast<float*>(part)[k]; }
  HEADWISE_INLINE float operator[](int k) const { return reinterpret_cast<const float*>(part)[k]; }
};
struct Mask {
  IntVec part[kParts];
};

#define HEADWISE_BINARY(OP)                            \
  HEADWISE_INLINE Wide operator OP(Wide a, Wide b) {   \
    HEADWISE_PARTS a.part[i] = a.part[i] OP b.part[i]; \
    return a;                                          \
  }
HEADWISE_BINARY(+)
HEADWISE_BINARY(-)
HEADWISE_BINARY(*)
HEADWISE_BINARY(/)
#undef HEADWISE_BINARY
#define HEADWISE_COMPARE(OP)                           \
  HEADWISE_INLINE Mask operator OP(Wide a, Wide b) {   \
    Mask m;                                            \
    HEADWISE_PARTS m.part[i] = a.part[i] OP b.part[i]; \
    return m;                                          \
  }
HEADWISE_COMPARE(<)
HEADWISE_COMPARE(>)
HEADWISE_COMPARE(<=)
HEADWISE_COMPARE(>=)
HEADWISE_COMPARE(==)
#undef HEADWISE_COMPARE
HEADWISE_INLINE Mask operator&(Mask a, Mask b) {
  HEADWISE_PARTS a.part[i] &= b.part[i];
  return a;
}
HEADWISE_INLINE Wide operator-(Wide a) {
  HEADWISE_PARTS a.part[i] = -a.part[i];
  return a;
}
HEADWISE_INLINE Wide& operator+=(Wide& a, Wide b) { return a = a + b; }
HEADWISE_INLINE Wide& operator-=(Wide& a, Wide b) { return a = a - b; }
HEADWISE_INLINE Wide& operator*=(Wide& a, Wide b) { return a = a * b; }
HEADWISE_INLINE Wide select(Mask m, Wide a, Wide b) {
  HEADWISE_PARTS a.part[i] = m.part[i] ? a.part[i] : b.part[i];
  return a;
}
HEADWISE_INLINE Wide fma(Wide a, Wide b, Wide c) {
  HEADWISE_PARTS c.part[i] = fma(a.part[i], b.part[i], c.part[i]);
  return c;
}
HEADWISE_INLINE Wide sqrt(Wide x) {
  HEADWISE_PARTS x.part[i] = sqrt(x.part[i]);
  return x;
}
// A NaN in the first argument stays one: a member that has diverged must be found out.
HEADWISE_INLINE Wide max(Wide x, Wide low) { return select(x < low, low, x); }
HEADWISE_INLINE Wide min(Wide x, Wide high) { return select(x > high, high, x); }
// The smaller of both; NaN if either is.
HEADWISE_INLINE Wide least(Wide a, Wide b) { return select(a < b, a, select(a == a, b, a)); }
HEADWISE_INLINE Wide abs(Wide x) { return select(x < 0.0f, -x, x); }
HEADWISE_INLINE Wide load(const float* p) {
  Wide x;
  HEADWISE_PARTS x.part[i] = load_vec(p + kLanes * i);
  return x;
}
HEADWISE_INLINE void store(float* p, Wide x) {
  HEADWISE_PARTS store_vec(p + kLanes * i, x.part[i]);
}
HEADWISE_INLINE Wide iota() {
  Wide x;
  for (int k = 0; k < kWide; ++k) x[k] = static_cast<float>(k);
  return x;
}
// The first n <= 16 numbers, and zeros; the way back.
HEADWISE_INLINE Wide load(const float* p, int n) {
  if (n >= kWide) return load(p);
  Wide x(0.0f);
  for (int k = 0; k < n; ++k) x[k] = p[k];
  return x;
}
HEADWISE_INLINE void store(float* p, Wide x, int n) {
  if (n >= kWide) return store(p, x);
  for (int k = 0; k < n; ++k) p[k] = x[k];
}
// The sum of the first n, one after the other.
inline float sum(Wide x, int n = kWide) noexcept {
  float total = 0.0f;
  for (int k = 0; k < n; ++k) total += x[k];
  return total;
}
// One number of each of n <= 16 rows that are `pitch` apart; the way back.
HEADWISE_INLINE Wide column(const float* x, std::int64_t pitch, int n) {
  if (pitch == 1) return load(x, n);
  Wide y(0.0f);
  if (n == kWide) {
#pragma GCC unroll 16
    for (int k = 0; k < kWide; ++k) y[k] = x[k * pitch];
  } else {
    for (int k = 0; k < n; ++k) y[k] = x[k * pitch];
  }
  return y;
}
HEADWISE_INLINE void put(Wide y, float* x, std::int64_t pitch, int n) {
  if (pitch == 1) return store(x, y, n);
  for (int k = 0; k < n; ++k) x[k * pitch] = y[k];
}

// ---- functions, without branches, to two or three units in the last place ------------------

// e^x = scale * (1 + rest) for x in [-87, 88].
struct Power {
  Wide scale, rest;
};
HEADWISE_INLINE Power power_of_e(Wide x) {
  const Wide whole = fma(x, 1.44269504f, 12582912.0f) - Wide(12582912.0f);  // to the nearest
  Wide r = fma(whole, -0.693359375f, x);
  r = fma(whole, 2.12194440e-4f, r);
  Wide p(1.9875691500e-4f);
  p = fma(p, r, 1.3981999507e-3f);
  p = fma(p, r, 8.3334519073e-3f);
  p = fma(p, r, 4.1665795894e-2f);
  p = fma(p, r, 1.6666665459e-1f);
  p = fma(p, r, 5.0000001201e-1f);
  Wide scale;
  HEADWISE_PARTS {
    const IntVec exponent = __builtin_convertvector(whole.part[i], IntVec);
    const BitVec power = (std::bit_cast<BitVec>(exponent) + 127u) << 23;
    scale.part[i] = std::bit_cast<Vec>(power);
  }
  return {scale, fma(p * r, r, r)};
}
// e^x; zero below -87, no larger than at 88. A NaN stays one.
HEADWISE_INLINE Wide exp(Wide x) {
  const Power y = power_of_e(min(max(x, -87.0f), 88.0f));
  const Wide found = select(x < -87.0f, 0.0f, (y.rest + Wide(1.0f)) * y.scale);
  return select(x == x, found, x);
}
// e^x - 1, without losing digits near zero.
HEADWISE_INLINE Wide expm1(Wide x) {
  const Power y = power_of_e(min(max(x, -87.0f), 88.0f));
  return select(x == x, fma(y.rest, y.scale, y.scale - Wide(1.0f)), x);
}
// The natural logarithm of positive normal numbers (Cephes). A NaN stays one.
HEADWISE_INLINE Wide log(Wide x) {
  Wide m, exponent;
  HEADWISE_PARTS {
    const BitVec shifted = std::bit_cast<BitVec>(x.part[i]) - 0x3F3504F3u;
    exponent.part[i] = __builtin_convertvector(std::bit_cast<IntVec>(shifted) >> 23, Vec);
    m.part[i] = std::bit_cast<Vec>((shifted & 0x007FFFFFu) + 0x3F3504F3u);
  }
  m = m - Wide(1.0f);
  const Wide z = m * m;
  Wide p(7.0376836292e-2f);
  for (const float c : {-1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                        -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f}) {
    p = fma(p, m, c);
  }
  p = fma(exponent, -2.12194440e-4f, m * z * p) - Wide(0.5f) * z;
  return select(x == x, fma(exponent, 0.693359375f, m + p), x);
}
// The rational approximation that Eigen and XLA use.
HEADWISE_INLINE Wide tanh(Wide x) {
  const Wide y = min(max(x, -7.90531110f), 7.90531110f), z = y * y;
  Wide p(-2.76076847742355e-16f), q(1.19825839466702e-06f);
  for (const float c : {2.00018790482477e-13f, -8.60467152213735e-11f, 5.12229709037114e-08f,
                        1.48572235717979e-05f, 6.37261928875436e-04f, 4.89352455891786e-03f}) {
    p = fma(p, z, c);
  }
  for (const float c : {1.18534705686654e-04f, 2.26843463243900e-03f, 4.89352518554385e-03f}) {
    q = fma(q, z, c);
  }
  return y * p / q;
}
// log(1 + e^-|x|): what is left of a softplus beside its ramp.
HEADWISE_INLINE Wide log1p_exp(Wide x) { return log(exp(-abs(x)) + Wide(1.0f)); }
HEADWISE_INLINE Wide softplus(Wide x) { return max(x, 0.0f) + log1p_exp(x); }
// Uniform numbers on a grid of 2^-24 in [0, 1) as standard normal ones: the inverse of the error
// function by Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011). The grid is
// shifted by half a step: symmetric about 1/2, and never 0 or 1.
HEADWISE_INLINE Wide normal_of(Wide uniform) {
  const Wide x = fma(uniform, 2.0f, 0x1p-24f - 1.0f);
  const Wide w = -log((Wide(1.0f) - x) * (Wide(1.0f) + x));
  const Wide a = w - Wide(2.5f), b = sqrt(max(w, 0.0f)) - Wide(3.0f);
  Wide near(2.81022636e-08f), far(-2.00214257e-04f);
  for (const float c : {3.43273939e-07f, -3.5233877e-06f, -4.39150654e-06f, 2.1858087e-04f,
                        -1.25372503e-03f, -4.17768164e-03f, 2.46640727e-01f, 1.50140941f}) {
    near = fma(near, a, c);
  }
  for (const float c : {1.00950558e-04f, 1.34934322e-03f, -3.67342844e-03f, 5.73950773e-03f,
                        -7.6224613e-03f, 9.43887047e-03f, 1.00167406f, 2.83297682f}) {
    far = fma(far, b, c);
  }
  return select(w < 5.0f, near, far) * x * Wide(1.41421356f);
}

}  // namespace headwise::ops
