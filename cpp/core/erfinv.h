// Uniform numbers as normal ones, each by itself: the inverse of the error function without
// branches, so that a loop over it vectorises.
#pragma once

#include <cmath>

#include "core/rng.h"

namespace headwise {

// The inverse of the error function inside (-1, 1), to 5e-7 of itself. The polynomials are those of
// Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), for single precision.
[[nodiscard]] inline float erfinv_approx(float x) noexcept {
  const float w = -log_approx((1.0f - x) * (1.0f + x));
  const float a = w - 2.5f, b = std::sqrt(w > 0.0f ? w : 0.0f) - 3.0f;
  float near = 2.81022636e-08f;
  near = near * a + 3.43273939e-07f;
  near = near * a - 3.5233877e-06f;
  near = near * a - 4.39150654e-06f;
  near = near * a + 2.1858087e-04f;
  near = near * a - 1.25372503e-03f;
  near = near * a - 4.17768164e-03f;
  near = near * a + 2.46640727e-01f;
  near = near * a + 1.50140941f;
  float far = -2.00214257e-04f;
  far = far * b + 1.00950558e-04f;
  far = far * b + 1.34934322e-03f;
  far = far * b - 3.67342844e-03f;
  far = far * b + 5.73950773e-03f;
  far = far * b - 7.6224613e-03f;
  far = far * b + 9.43887047e-03f;
  far = far * b + 1.00167406f;
  far = far * b + 2.83297682f;
  return (w < 5.0f ? near : far) * x;
}

// A number in [0, 1) as a standard normal one. It is shifted by half a step of the 24-bit grid:
// symmetric about 1/2, and never 0 or 1.
[[nodiscard]] inline float normal_of(float uniform) noexcept {
  return erfinv_approx(uniform * 2.0f + (0x1p-24f - 1.0f)) * 1.41421356f;
}

}  // namespace headwise
