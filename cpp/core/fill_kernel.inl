// A row of uniform numbers: element i is word i % 4 of the draw i / 4; see core/isa.h.
namespace headwise::fill::HEADWISE_ISA {

inline void uniforms(float* out, std::int64_t size, std::uint64_t seed, std::uint32_t step_low,
                     std::uint32_t stream, std::uint32_t step_high) noexcept {
  const auto key0 = static_cast<std::uint32_t>(seed);
  const auto key1 = static_cast<std::uint32_t>(seed >> 32);
  constexpr int kDraws = 16;  // worked on together, so that the loop over them vectorizes
  for (std::int64_t first = 0; first < size; first += 4 * kDraws) {
    float block[4 * kDraws];
    for (int i = 0; i < kDraws; ++i) {
      auto a = static_cast<std::uint32_t>(first / 4 + i), b = step_low, c = stream, d = step_high;
      std::uint32_t k0 = key0, k1 = key1;
#pragma GCC unroll 10
      for (int round = 0; round < 10; ++round) {
        const std::uint64_t product0 = std::uint64_t{0xD2511F53} * a;
        const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * c;
        a = static_cast<std::uint32_t>(product1 >> 32) ^ b ^ k0;
        c = static_cast<std::uint32_t>(product0 >> 32) ^ d ^ k1;
        b = static_cast<std::uint32_t>(product1);
        d = static_cast<std::uint32_t>(product0);
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
      }
      block[4 * i] = uniform(a);
      block[4 * i + 1] = uniform(b);
      block[4 * i + 2] = uniform(c);
      block[4 * i + 3] = uniform(d);
    }
    const std::int64_t count = size - first < 4 * kDraws ? size - first : 4 * kDraws;
    for (std::int64_t i = 0; i < count; ++i) out[first + i] = block[i];
  }
}

}  // namespace headwise::fill::HEADWISE_ISA
