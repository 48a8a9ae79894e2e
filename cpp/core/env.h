// What an environment is: plain data and a few static functions.
//
// An environment handles `kWidth` slots at a time (a block), so that the compiler can vectorize
// across slots; a simple one has width 1. It never sees the clock: time limits, resets, episode
// statistics and threads are VecEnv's.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "core/rng.h"
#include "core/spec.h"

namespace headwise {

// Who the slots of a block are and what time it is for each: the address of their randomness.
template <int W>
struct Slots {
  std::uint64_t seed[W];
  std::uint32_t lane[W];
  std::uint32_t clock[W];

  [[nodiscard]] Rng rng(int i, Purpose purpose) const noexcept {
    return {seed[i], lane[i], clock[i], purpose};
  }
};

// What a step of a block brought. `terminated` is the task's own end, never a time limit.
template <int W>
struct Outcome {
  float reward[W];
  std::int32_t terminated[W];
};

template <class E>
concept Env = std::is_trivially_copyable_v<typename E::State> &&
              requires(typename E::Params params, typename E::State state,
                       typename E::Action action, const Slots<E::kWidth>& slots,
                       Outcome<E::kWidth>& outcome, Rng& rng, const float* values, float* floats) {
                // A rough cost of one slot's step: decides when threads are worth waking.
                { E::kNanoseconds } -> std::convertible_to<int>;
                { E::kName } -> std::convertible_to<const char*>;
                // Steps after which an episode is cut off when the caller names no number.
                { E::time_limit(params) } -> std::same_as<int>;
                // The settings, and a complaint about them ("" when they are fine).
                { params.settings() } -> std::same_as<std::vector<Setting>>;
                { params.check() } -> std::same_as<std::string>;
                // Works out, once and after the check, whatever the settings imply.
                { params.prepare() };
                // The heads, choices first.
                { E::heads(params) } -> std::same_as<std::vector<Head>>;
                { E::obs_size(params) } -> std::same_as<int>;
                // Bounds that no observation of an episode of the given length leaves.
                { E::obs_bounds(params, int{}, floats, floats) };
                { E::reset(state, int{}, params, rng) };
                // An action of slot i: for each head an option's number or a value, always one that
                // exists.
                { E::load(action, int{}, params, values) };
                { E::step(state, action, params, slots, outcome) };
                { E::observe(state, int{}, params, floats) };
                // The fields of slot i, and a complaint about their values ("" when fine): those of
                // an episode that goes on, or else also those that one may end with. Files from
                // strangers are checked by it, so it looks at whatever is used as an index.
                { E::fields(state, int{}, params) } -> std::same_as<std::vector<Field>>;
                { E::check(state, int{}, params, bool{}) } -> std::same_as<std::string>;
              };

}  // namespace headwise
