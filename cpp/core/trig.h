// Sine and cosine to within a unit in the last place, with nothing of libm: the same bits on every
// machine. The polynomials and the reduction are those of fdlibm (Sun Microsystems, 1993).
#pragma once

#include <bit>
#include <cstdint>

namespace headwise {

constexpr double kPi = 3.141592653589793;

struct SinCos {
  double sin, cos;
};

// Of an angle up to a billion or so. From about a million on, the error in the angle is one of some
// units in its last place.
[[nodiscard]] inline SinCos sin_cos(double angle) noexcept {
  // A whole number of quarter turns, and the rest as a number and what it was rounded by. A quarter
  // turn is in three parts, of which the first two have so few bits that products are exact.
  constexpr double kPart1 = 1.57079632673412561417e+00, kPart2 = 6.07710050630396597660e-11,
                   kPart3 = 2.02226624879595063154e-21;
  // Adding so much leaves whole numbers in the last places, rounded to the nearest.
  constexpr double kWhole = 0x1.8p52;
  const double counted = angle * 6.36619772367581382433e-01 + kWhole, turns = counted - kWhole;
  const double first = angle - turns * kPart1, second = turns * kPart2, near = first - second;
  const double missing = ((first - near) - second) - turns * kPart3;
  const double x = near + missing, rest = (near - x) + missing, z = x * x, v = z * x;

  const double p = 8.33333333332248946124e-03 +
                   z * (-1.98412698298579493134e-04 +
                        z * (2.75573137070700676789e-06 +
                             z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)));
  const double s = x - ((z * (0.5 * rest - v * p) - rest) - v * -1.66666666666666324348e-01);

  const double q = z * (4.16666666666666019037e-02 +
                        z * (-1.38888888888741095749e-03 + z * 2.48015872894767294178e-05)) +
                   z * z * (z * z) *
                       (-2.75573143513906633035e-07 +
                        z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11));
  const double half = 0.5 * z, w = 1.0 - half;
  const double c = w + (((1.0 - w) - half) + (z * q - x * rest));

  const auto quarter = std::bit_cast<std::uint64_t>(counted) & 3;
  const double sine = (quarter & 1) != 0 ? c : s, cosine = (quarter & 1) != 0 ? s : c;
  return {(quarter & 2) != 0 ? -sine : sine, ((quarter + 1) & 2) != 0 ? -cosine : cosine};
}

}  // namespace headwise
