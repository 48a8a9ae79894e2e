// What Python sees of random numbers, and of transitions drawn by them.
#include <nanobind/stl/array.h>
#include <nanobind/stl/tuple.h>

#include "bindings.h"
#include "core/fill.h"
#include "core/replay.h"
#include "core/rng.h"
#include "core/spec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

template <class A, class B>
bool same_shape(const A& a, const B& b) {
  return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
}

void fill_rows(Array<float, -1, -1> out, Array<const std::uint64_t, -1> seeds, std::uint32_t stream,
               std::uint64_t step) {
  if (seeds.shape(0) != out.shape(0)) throw Fault("one row of numbers for each seed.");
  const auto size = static_cast<std::int64_t>(out.shape(1));
  for (std::size_t p = 0; p < out.shape(0); ++p) {
    fill_uniforms(out.data() + p * out.shape(1), size, seeds.data()[p], stream, step);
  }
}

void replay_draw(Array<const float, -1, -1, -1, -1> store, Array<const std::int64_t, -1, -1> next,
                 Array<const std::int64_t, -1, -1> count, Array<const float, -1, -1, 2> uniform,
                 Array<const float, -1> gamma, std::size_t terminated,
                 Array<float, -1, -1, -1> drawn, Array<float, -1, -1> discount) {
  const std::size_t members = store.shape(0), rows = store.shape(1), slots = store.shape(2);
  const std::size_t width = store.shape(3), batch = uniform.shape(1);
  if (next.shape(0) != members || next.shape(1) != slots || !same_shape(count, next) ||
      uniform.shape(0) != members || gamma.shape(0) != members || !same_shape(drawn, uniform) ||
      drawn.shape(2) != width || !same_shape(discount, uniform)) {
    throw Fault("arrays that do not fit the memory.");
  }
  if (rows == 0 || slots == 0 || terminated >= width) throw Fault("an empty memory.");
  for (std::size_t i = 0; i < members * slots; ++i) {
    const auto most = static_cast<std::int64_t>(rows);
    const std::int64_t n = next.data()[i], c = count.data()[i];
    if (n < 0 || n >= most || c < 0 || c > most) throw Fault("a cursor outside its ring.");
  }
  const nb::gil_scoped_release release;
  for (std::size_t p = 0; p < members; ++p) {
    draw({store.data() + p * rows * slots * width, next.data() + p * slots,
          count.data() + p * slots, static_cast<std::int64_t>(rows),
          static_cast<std::int64_t>(slots), static_cast<std::int64_t>(width)},
         uniform.data() + p * batch * 2, gamma.data()[p], static_cast<std::int64_t>(terminated),
         static_cast<std::int64_t>(batch), drawn.data() + p * batch * width,
         discount.data() + p * batch);
  }
}

}  // namespace

void bind_draws(nb::module_& m) {
  m.def("philox", &philox, "counter"_a, "key"_a,
        "Four random words: Philox4x32-10 of four counter words and a 64-bit key.");
  m.def(
      "normal_pair",
      [](std::uint32_t radius_word, std::uint32_t angle_word) {
        const NormalPair pair = normal_pair(radius_word, angle_word);
        return std::tuple(pair.first, pair.second);
      },
      "radius_word"_a, "angle_word"_a, "Two random words as two standard normal numbers.");
  m.def("fill_uniforms", &fill_rows, "out"_a.noconvert(), "seeds"_a.noconvert(), "stream"_a,
        "step"_a,
        "Fills each row with numbers in [0, 1): a function of (seed, stream, step, index).");
  m.def("replay_draw", &replay_draw, "store"_a.noconvert(), "next"_a.noconvert(),
        "count"_a.noconvert(), "uniform"_a.noconvert(), "gamma"_a.noconvert(), "terminated"_a,
        "drawn"_a.noconvert(), "discount"_a.noconvert(),
        "Transitions drawn from each member's rings, and the discount of what follows.");
}

}  // namespace headwise
