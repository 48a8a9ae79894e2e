// The exponential of float32 numbers without branches, so that a loop over it vectorises, and the
// same for a number wherever it stands in a row. A NaN stays one.
#pragma once

#include <bit>
#include <cstdint>

namespace headwise {

// A number as so many times log(2) and a rest of at most half of that; exp(rest) - 1 by its series,
// of which the first term left out is below 2e-8 of it. For numbers from -87 to 87.
struct Exponent {
  float power;        // two to the whole number
  float rest_less_1;  // exp(rest) - 1
};
[[nodiscard]] inline Exponent exponent_of(float x) noexcept {
  const float whole = (x * 1.4426950409f + 12582912.0f) - 12582912.0f;  // rounds to the nearest
  // log(2) is taken away in two parts, the first of which has few digits.
  const float r = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
  const float p =
      r * (1.0f +
           r * (0.5f + r * (1.6666667e-1f +
                            r * (4.1666668e-2f +
                                 r * (8.3333338e-3f + r * (1.3888889e-3f + r * 1.9841270e-4f))))));
  const auto bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(whole) + 127) << 23;
  return {std::bit_cast<float>(bits), p};
}

// exp(x) to 2e-7 of itself; zero below -87, and no larger than at 87.
[[nodiscard]] inline float exp_approx(float x) noexcept {
  const float raised = x > -87.0f ? x : -87.0f;
  const Exponent e = exponent_of(raised < 87.0f ? raised : 87.0f);
  const float result = x < -87.0f ? 0.0f : e.power * e.rest_less_1 + e.power;
  return x == x ? result : x;
}

// x above zero and exp(x) - 1 below, to 2e-7 of itself.
[[nodiscard]] inline float elu(float x) noexcept {
  const Exponent e = exponent_of(x < 0.0f ? (x > -80.0f ? x : -80.0f) : 0.0f);
  const float result = x > 0.0f ? x : e.power * e.rest_less_1 + (e.power - 1.0f);
  return x == x ? result : x;
}

}  // namespace headwise
