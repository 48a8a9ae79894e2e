// Settings that change over a run, by clocks that are where the learner is.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

inline void check_schedule(const Buffer& clock, const Buffer& out) {
  expect_all(clock, "clock", {out.members, 1, 1, 2});
  expect_all(out, "the setting", {out.members, 1, 1, 1});
}
// In a line from `start` to `end` over so many ticks, and `end` from then on.
inline void linear(const Buffer& clock, const Buffer& start, const Buffer& end, const Buffer& out,
                   float span) {
  check_schedule(clock, out);
  for (const Buffer& x : {start, end}) expect_all(x, "a setting", {out.members, 1, 1, 1});
  emit(out.members, [=](int p) {
    const float ticks = static_cast<float>(*clock.longs(p)), from = one(start, p);
    const float share = span > 0.0f ? std::min(ticks / span, 1.0f) : 1.0f;
    *out.at(p) = from + (one(end, p) - from) * share;
  });
}
// Start * decay^clock, at least the floor.
inline void decaying(const Buffer& clock, const Buffer& out, float start, float decay,
                     float floor) {
  check_schedule(clock, out);
  emit(out.members, [=](int p) {
    const double power = std::pow(static_cast<double>(decay), static_cast<double>(*clock.longs(p)));
    *out.at(p) = std::max(static_cast<float>(start * power), floor);
  });
}

}  // namespace headwise::ops
