// The monotonic mixture ELU(A |W1|) |W2| of advantages, its gradient and its slope, for many rows:
// one pass over memory each, where tensor operations take a dozen. W1 is (heads, width) and W2
// (width), and every row has its own.
#pragma once

#include <cstdint>

#include "core/exponential.h"
#include "core/isa.h"

namespace headwise::mixture {

struct Rows {
  std::int64_t count, heads, width;
  const float* advantage;  // (count, heads)
  const float* first;      // (count, heads, width), before its sign is dropped
  const float* second;     // (count, width), before its sign is dropped
};

[[nodiscard]] inline float size_of(float x) noexcept { return x < 0.0f ? -x : x; }
// The slope of |x| times y.
[[nodiscard]] inline float along_sign(float x, float y) noexcept {
  return x > 0.0f ? y : (x < 0.0f ? -y : 0.0f);
}

// The slope of ELU, from its result.
[[nodiscard]] inline float elu_slope(float result) noexcept {
  return result < 0.0f ? result + 1.0f : 1.0f;
}

// The sum of term(i), in sixteen running sums that are added in a fixed order.
constexpr int kLanes = 16;
template <class Term>
[[nodiscard]] inline __attribute__((always_inline)) float lane_sum(std::int64_t size,
                                                                   const Term& term) noexcept {
  float sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) sums[lane] += term(i + lane);
  }
  for (int lane = 0; i < size; ++i, ++lane) sums[lane] += term(i);
  float total = 0.0f;
  for (const float sum : sums) total += sum;
  return total;
}

}  // namespace headwise::mixture

#define HEADWISE_KERNEL "core/mixture_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

using MixtureRows = mixture::Rows;

// The mixture (count), and the hidden units (count, width) that the gradient needs again.
inline void mix(const MixtureRows& rows, float* hidden, float* mixed) noexcept {
  HEADWISE_DISPATCH(mixture, forward, rows, hidden, mixed);
}
// The gradients by advantages and both weights, from that by the mixture.
inline void mix_backward(const MixtureRows& rows, const float* hidden, const float* grad,
                         float* to_advantage, float* to_first, float* to_second) noexcept {
  HEADWISE_DISPATCH(mixture, backward, rows, hidden, grad, to_advantage, to_first, to_second);
}

// How much each advantage counts where it is, (count, heads): the gradient by it where that by the
// mixture is one. Overwrites the hidden units.
inline void mix_slope(const MixtureRows& rows, float* hidden, float* slope) noexcept {
  HEADWISE_DISPATCH(mixture, slope, rows, hidden, slope);
}

}  // namespace headwise
