// Counter-based randomness: a number is a pure function of (seed, counter), so it does not depend
// on the order of calls, the number of threads or the size of a population.
#pragma once

#include <array>
#include <cstdint>

namespace headwise {

using Words = std::array<std::uint32_t, 4>;

// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
[[nodiscard]] constexpr Words philox(Words counter, std::uint64_t key) noexcept {
  constexpr std::uint64_t kMul0 = 0xD2511F53, kMul1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round, key0 += kWeyl0, key1 += kWeyl1) {
    const std::uint64_t product0 = kMul0 * counter[0], product1 = kMul1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
  }
  return counter;
}

// The 24 high bits of a word as a float in [0, 1): every value is exact.
[[nodiscard]] constexpr float uniform(std::uint32_t word) noexcept {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

}  // namespace headwise
