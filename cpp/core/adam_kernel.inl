// One Adam step of a row of parameters, whose gradients are then zero; see core/isa.h.
namespace headwise::adam::HEADWISE_ISA {

inline void step(float* __restrict value, float* __restrict grad, float* __restrict mean,
                 float* __restrict square, std::int64_t size, const Step& s) noexcept {
  for (std::int64_t i = 0; i < size; ++i) {
    const float g = grad[i] * s.grad_scale;
    grad[i] = 0.0f;
    const float m = s.beta1 * mean[i] + (1.0f - s.beta1) * g;
    const float v = s.beta2 * square[i] + (1.0f - s.beta2) * g * g;
    mean[i] = m;
    square[i] = v;
    value[i] -= s.step_size * m / (__builtin_sqrtf(v) * s.root_correction + s.epsilon);
  }
}

// Moves numbers a part of the way to others. The multiply-add is fused, which is what torch's lerp
// does, so targets are the same to the bit as with it.
inline void follow(float* __restrict target, const float* __restrict value, std::int64_t size,
                   float rate) noexcept {
  if (rate < 0.5f) {
    for (std::int64_t i = 0; i < size; ++i) {
      target[i] = __builtin_fmaf(rate, value[i] - target[i], target[i]);
    }
  } else {
    for (std::int64_t i = 0; i < size; ++i) {
      target[i] = __builtin_fmaf(rate - 1.0f, value[i] - target[i], value[i]);
    }
  }
}

// The sum of squares, in sixteen running sums that are added in a fixed order.
inline double sum_of_squares(const float* grad, std::int64_t size) noexcept {
  double sums[16] = {};
  std::int64_t i = 0;
  for (; i + 16 <= size; i += 16) {
    for (int lane = 0; lane < 16; ++lane) {
      const double g = grad[i + lane];
      sums[lane] += g * g;
    }
  }
  for (int lane = 0; i < size; ++i, ++lane) sums[lane] += double{grad[i]} * double{grad[i]};
  double total = 0.0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace headwise::adam::HEADWISE_ISA
