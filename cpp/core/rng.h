// Counter-based randomness: a number is a pure function of (seed, lane, clock, purpose, draw), so
// it does not depend on the order of calls, the number of threads or the size of a population.
// Nothing of <random> or libm is used: the same words give the same floats on every platform.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace headwise {

using Words = std::array<std::uint32_t, 4>;

// What a draw is for. Draws for different purposes never share a counter.
enum class Purpose : std::uint32_t { kReset = 0, kStep = 1 };

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

// A word as one of `n` equally likely numbers, to within n / 2^32.
[[nodiscard]] constexpr int below(std::uint32_t word, int n) noexcept {
  return static_cast<int>((std::uint64_t{word} * static_cast<std::uint32_t>(n)) >> 32);
}

// The natural logarithm of a normal positive float, to a unit or two in the last place. The
// polynomial is that of Cephes (Moshier); it has no branches, so loops over it vectorize.
[[nodiscard]] inline float log_approx(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  // A mantissa in [sqrt(1/2), sqrt(2)) and the exponent that goes with it.
  const std::uint32_t shifted = bits - 0x3F3504F3u;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(shifted) >> 23);
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFu) + 0x3F3504F3u) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const float z = m * m;
  return (m * z * p - 0.5f * z + exponent * -2.12194440e-4f) + m + exponent * 0.693359375f;
}

// Two words as two independent standard normal numbers (Box and Muller), up to 6.8 in size. The
// polynomials are good to a few units in the last place, and nothing branches.
struct NormalPair {
  float first, second;
};
[[nodiscard]] inline NormalPair normal_pair(std::uint32_t radius_word,
                                            std::uint32_t angle_word) noexcept {
  const float u = (static_cast<float>(radius_word) + 0.5f) * 0x1p-32f;
  const float log_u = log_approx(u);
  const float radius = std::sqrt(log_u < 0.0f ? -2.0f * log_u : 0.0f);
  // The angle in turns is a whole number of quarters and a rest of an eighth at most.
  const float turns = uniform(angle_word);
  const auto quarter = static_cast<std::int32_t>(4.0f * turns + 0.5f);
  const float x = 6.2831853f * (turns - 0.25f * static_cast<float>(quarter)), z = x * x;
  const float s = x * (1.0f + z * (-1.6666667e-1f +
                                   z * (8.3333310e-3f + z * (-1.9840874e-4f + z * 2.7525562e-6f))));
  const float c =
      1.0f + z * (-0.5f + z * (4.1666638e-2f + z * (-1.3888378e-3f + z * 2.4760495e-5f)));
  const bool odd = (quarter & 1) != 0;
  const float cosine = odd ? s : c, sine = odd ? c : s;
  return {(((quarter + 1) & 2) != 0 ? -radius : radius) * cosine,
          ((quarter & 2) != 0 ? -radius : radius) * sine};
}

// The source of a slot's randomness at one moment: successive calls give successive draws.
class Rng {
 public:
  Rng(std::uint64_t seed, std::uint32_t lane, std::uint32_t clock, Purpose purpose) noexcept
      : key_(seed), counter_{lane, clock, static_cast<std::uint32_t>(purpose), 0} {}

  std::uint32_t word() noexcept {
    if (used_ == 8) refill();
    return words_[used_++];
  }
  float uniform() noexcept { return headwise::uniform(word()); }
  int below(int n) noexcept { return headwise::below(word(), n); }

 private:
  // Two draws at a time: the processor works on both at once, so the second is nearly free.
  void refill() noexcept {
    Words next = counter_;
    ++next[3];
    const Words first = philox(counter_, key_), second = philox(next, key_);
    for (std::size_t i = 0; i < 4; ++i) {
      words_[i] = first[i];
      words_[i + 4] = second[i];
    }
    counter_[3] += 2;
    used_ = 0;
  }

  std::uint64_t key_;
  Words counter_;
  std::array<std::uint32_t, 8> words_;
  std::size_t used_ = 8;
};

}  // namespace headwise
