// Adam, with clipping, the quarantine of members that diverged, and a network that follows.
#pragma once

#include <limits>

#include "ops/program.h"

namespace headwise::ops {

// b^n by squaring: no library's pow, whose last digit differs from one to the next.
inline double power(double b, std::int64_t n) noexcept {
  double result = 1.0;
  for (; n > 0; n >>= 1, b *= b) {
    if ((n & 1) != 0) result *= b;
  }
  return result;
}

// In sixteen running sums, and those in order. By itself, it is a loop that compilers vectorize.
__attribute__((noinline)) inline double sum_of_squares(const float* x, int size) noexcept {
  double sums[kWide] = {};
  int i = 0;
  for (; i + kWide <= size; i += kWide) {
    for (int k = 0; k < kWide; ++k) sums[k] += double{x[i + k]} * double{x[i + k]};
  }
  for (int k = 0; i + k < size; ++k) sums[k] += double{x[i + k]} * double{x[i + k]};
  double total = 0.0;
  for (const double part : sums) total += part;
  return total;
}

struct Adam {
  Buffer parameters;    // (members, 1, 1, size), with the gradients
  Buffer mean, square;  // the same without
  Buffer count;         // steps so far, an int64 in the bits of two columns
  Buffer learning_rate, alive, norm;
  float beta1, beta2, epsilon, max_norm;  // no clipping where max_norm is 0
  Buffer follower;  // other parameters that move the part `rate` of the way, if there are any
  float rate;
};

// The length of a member's gradient is not finite: it has diverged, and is left as it is from then
// on, its follower with it.
inline void adam_step(const Adam& s) {
  const Sizes all = sizes_of(s.parameters), setting{all.members, 1, 1, 1};
  expect_all(s.parameters, "parameters", {all.members, 1, 1, all.columns});
  if (s.parameters && s.parameters.gradients == nullptr)
    throw Fault("parameters that learn nothing");
  for (const Buffer& x : {s.mean, s.square}) expect_all(x, "a running mean", all);
  if (s.follower) expect_all(s.follower, "what follows", all);
  for (const Buffer& x : {s.learning_rate, s.alive, s.norm}) expect_all(x, "a setting", setting);
  expect_long(s.count, "count", all.members);
  emit(s.parameters.members, [s](int p) {
    const int size = s.parameters.columns;
    float *values = s.parameters.at(p), *gradients = s.parameters.gradient(p);
    const double norm = std::sqrt(sum_of_squares(gradients, size));
    *s.norm.at(p) = static_cast<float>(norm);
    auto& steps = *s.count.longs(p);
    const auto count = steps = static_cast<std::int64_t>(static_cast<std::uint64_t>(steps) + 1);
    if (!std::isfinite(norm)) *s.alive.at(p) = 0.0f;
    if (one(s.alive, p) == 0.0f) return;
    const double correction1 = 1.0 - power(double{s.beta1}, count);
    const double correction2 = 1.0 - power(double{s.beta2}, count);
    const bool clips = s.max_norm > 0.0f && norm > double{s.max_norm};
    const Wide scale(clips ? static_cast<float>(double{s.max_norm} / (norm + 1e-6)) : 1.0f);
    const Wide size_of_step(static_cast<float>(one(s.learning_rate, p) / correction1));
    const Wide root(static_cast<float>(1.0 / std::sqrt(correction2))), epsilon(s.epsilon);
    const Wide beta1(s.beta1), rest1(1.0f - s.beta1), beta2(s.beta2), rest2(1.0f - s.beta2);
    float *mean = s.mean.at(p), *square = s.square.at(p);
    float* follower = s.follower ? s.follower.at(p) : nullptr;
    const Wide rate(s.rate);
    for (int i = 0; i < size; i += kWide) {
      const Wide g = load(gradients + i) * scale;
      const Wide m = fma(beta1, load(mean + i), rest1 * g);
      const Wide v = fma(beta2, load(square + i), rest2 * g * g);
      store(mean + i, m);
      store(square + i, v);
      const Wide value = load(values + i) - size_of_step * m / fma(sqrt(v), root, epsilon);
      store(values + i, value);
      if (follower != nullptr) {
        const Wide old = load(follower + i);
        store(follower + i, fma(rate, value - old, old));
      }
    }
  });
}

}  // namespace headwise::ops
