// Adam for a population on the CPU: clipping, quarantine and the step in two passes over memory.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/isa.h"

namespace headwise::adam {

struct Step {
  float beta1, beta2, epsilon;
  float step_size;        // learning rate over the bias correction of the mean
  float root_correction;  // one over the root of the bias correction of the square
  float grad_scale;       // below 1 where the gradient is clipped
};

}  // namespace headwise::adam

#define HEADWISE_KERNEL "core/adam_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// Parameters one after the other, each (members, size) and contiguous: where they begin, and the
// size of one member's part.
struct Segments {
  const std::int64_t* offset;
  const std::int64_t* size;
  std::int64_t count;
};

// The tensors of a step. A member whose gradient is not finite is no longer alive: it is left as it
// was, its target with it, now and in later steps. `norm` receives the length of each member's
// gradient. Gradients are forgotten in the same pass, and `target`, unless it is null, moves a part
// of the way to the new values, `rate`.
struct AdamTensors {
  std::int64_t members;
  float *value, *grad, *mean, *square, *norm;
  const float* learning_rate;
  bool* alive;
  float *target, rate;
};
constexpr std::int64_t kBlock = 1024;  // numbers whose new values are still close when followed

inline void adam_step(const AdamTensors& t, const Segments& segments, std::int64_t count,
                      float beta1, float beta2, float epsilon, float max_norm) noexcept {
  const double correction1 = 1.0 - std::pow(double{beta1}, static_cast<double>(count));
  const double correction2 = 1.0 - std::pow(double{beta2}, static_cast<double>(count));
  for (std::int64_t p = 0; p < t.members; ++p) {
    double squares = 0.0;
    for (std::int64_t k = 0; k < segments.count; ++k) {
      const std::int64_t size = segments.size[k], at = segments.offset[k] + p * size;
      squares += HEADWISE_DISPATCH(adam, sum_of_squares, t.grad + at, size);
    }
    const double norm = std::sqrt(squares);
    t.norm[p] = static_cast<float>(norm);
    t.alive[p] = t.alive[p] && std::isfinite(norm);
    const auto follow = [&](std::int64_t at, std::int64_t size) {
      if (t.target == nullptr) return;
      HEADWISE_DISPATCH(adam, follow, t.target + at, t.value + at, size, t.rate);
    };
    if (!t.alive[p]) {
      for (std::int64_t k = 0; k < segments.count; ++k) {
        const std::int64_t size = segments.size[k], at = segments.offset[k] + p * size;
        std::fill_n(t.grad + at, size, 0.0f);
      }
      continue;
    }
    const double scale = max_norm > 0.0f && norm > max_norm ? max_norm / (norm + 1e-6) : 1.0;
    const adam::Step step = {beta1,
                             beta2,
                             epsilon,
                             static_cast<float>(t.learning_rate[p] / correction1),
                             static_cast<float>(1.0 / std::sqrt(correction2)),
                             static_cast<float>(scale)};
    for (std::int64_t k = 0; k < segments.count; ++k) {
      const std::int64_t end = segments.offset[k] + (p + 1) * segments.size[k];
      for (std::int64_t at = end - segments.size[k]; at < end; at += kBlock) {
        const std::int64_t size = std::min(kBlock, end - at);
        HEADWISE_DISPATCH(adam, step, t.value + at, t.grad + at, t.mean + at, t.square + at, size,
                          step);
        follow(at, size);
      }
    }
  }
}

}  // namespace headwise
