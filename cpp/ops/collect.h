// What collecting data in a compiled environment takes beside acting, so that any number of ticks
// is one run of a program: actions on their way there, its step, and rows of a rollout.
#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>

#include "core/env_port.h"
#include "ops/rows.h"

namespace headwise::ops {

// An environment refused a step; Python sees an EnvError.
struct EnvFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Somebody else's array, whose first axis is members and whose numbers are of any type: for each
// member so many rows of so many bytes, one after another.
struct Place {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::int64_t member = 0;  // bytes from one to the next
  int members = 0;
  std::int64_t rows = 1, size = 0;
};

// A row of each source goes where it belongs, at the cursor, an int64 in the bits, which moves; or
// all of it where there is none. Nothing is written beyond the end.
inline void write_rows(const std::vector<Place>& from, const std::vector<Place>& to,
                       const Buffer& cursor) {
  if (from.empty() || from.size() != to.size()) throw Fault("a place for each source");
  const int members = from[0].members;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const bool fits = from[i].size == to[i].size && from[i].rows == 1 && to[i].rows == to[0].rows &&
                      (cursor || to[i].rows == 1);
    if (!fits || from[i].members != members || to[i].members != members) {
      throw Fault("a place of another size than its source");
    }
  }
  if (cursor) expect_long(cursor, "the cursor", members);
  emit(members, [=](int p) {
    const std::int64_t row = cursor ? *cursor.longs(p) : 0;
    if (row < 0 || row >= to[0].rows) return;
    for (std::size_t i = 0; i < from.size(); ++i) {
      std::memcpy(to[i].data + p * to[i].member + row * to[i].size,
                  from[i].data + p * from[i].member, static_cast<std::size_t>(from[i].size));
    }
    if (cursor) *cursor.longs(p) = row + 1;
  });
}

// Actions of a learner (P, 1, E, heads of its own) in the order of the spec, and as the environment
// takes them, contiguous (P, E, H) both. Head h is the learner's head source[h], or column h of the
// row of `joint` (1, 1, J, H) that its only head names. Where `units` (1, 1, H, most) says what the
// first counts[h] options stand for, the environment is told that; what is no number becomes 0.
inline void to_heads(const Buffer& unit, const Place& action, const Place& heads,
                     const std::vector<int>& source, const Buffer& joint, const Buffer& units,
                     const std::vector<int>& counts) {
  const auto num_heads = static_cast<std::int64_t>(source.size());
  const std::int64_t bytes = num_heads * unit.rows * std::int64_t{sizeof(float)};
  expect_all(unit, "the actions", {unit.members, 1, unit.rows, unit.columns});
  for (const int h : source) {
    if (h < 0 || h >= unit.columns) throw Fault("a head of another learner");
  }
  for (const Place* place : {&action, &heads}) {
    if (place->members != unit.members || place->rows != 1 || place->size != bytes) {
      throw Fault("an array of other actions");
    }
  }
  if (joint) expect_all(joint, "joint actions", {1, 1, joint.rows, static_cast<int>(num_heads)});
  if (counts.size() != source.size()) throw Fault("a number of options for each head");
  for (const int count : counts) {
    if (count < 0 || (count > 0 && (!units || count > units.columns)))
      throw Fault("no such option");
  }
  if (units) expect_all(units, "units", {1, 1, static_cast<int>(num_heads), units.columns});
  emit(unit.members, [=](int p) {
    constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
    // What a number that says which names; NaN where there is no such thing.
    const auto named = [](float which, int count, const float* first, std::int64_t apart) {
      return which >= 0.0f && which < static_cast<float>(count)
                 ? first[static_cast<std::int64_t>(which) * apart]
                 : kNone;
    };
    auto* own = reinterpret_cast<float*>(action.data + p * action.member);
    auto* told = reinterpret_cast<float*>(heads.data + p * heads.member);
    for (int e = 0; e < unit.rows; ++e) {
      const float* given = unit.row(p, 0, e);
      for (std::size_t h = 0; h < source.size(); ++h, ++own, ++told) {
        *own =
            joint ? named(given[0], joint.rows, joint.values + h, joint.pitch) : given[source[h]];
        const float value =
            counts[h] > 0 ? named(*own, counts[h], units.row(0, 0, static_cast<int>(h)), 1) : *own;
        constexpr float kMost = std::numeric_limits<float>::max();
        *told = std::isnan(value) ? 0.0f : std::min(std::max(value, -kMost), kMost);
      }
    }
  });
}

// One step of an environment, all members at once.
inline void step_env(const std::shared_ptr<void>& owner, const EnvPort& port, const Place& heads) {
  const std::int64_t bytes = std::int64_t{port.rows} * port.columns * std::int64_t{sizeof(float)};
  if (heads.member != heads.size || heads.rows != 1 || heads.size * heads.members != bytes) {
    throw Fault("the actions must have one row for each slot and one column for each head");
  }
  emit_for_all([owner, port, heads] {
    const char* wrong = port.step(port.env, reinterpret_cast<const float*>(heads.data));
    if (wrong != nullptr) throw EnvFault(wrong);
  });
}

// A stopwatch for each member, in the bits of three int64: when it was started, nanoseconds so far,
// and how often it was stopped.
inline void time_passes(const Buffer& watch, bool stops) {
  check(watch, "the stopwatch", watch && watch.columns == 6, {watch.members, 1, 1, 6});
  emit(watch.members, [=](int p) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    std::int64_t* const x = watch.longs(p);
    const std::int64_t is = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
    if (stops) {
      x[1] += is - x[0];
      ++x[2];
    } else {
      x[0] = is;
    }
  });
}

}  // namespace headwise::ops
