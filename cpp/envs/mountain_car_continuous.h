// MountainCarContinuous: the car of MountainCar, with a push of any strength that costs its square.
// Gymnasium's MountainCarContinuous-v0, step by step, which keeps its state as float32.
#pragma once

#include <algorithm>

#include "core/registry.h"
#include "core/trig.h"

namespace headwise {

struct MountainCarContinuous {
  static constexpr const char* kName = "MountainCarContinuous";
  static constexpr int kWidth = 1, kNanoseconds = 50;
  static constexpr float kLeft = -1.2f, kRight = 0.6f, kGoal = 0.45f, kFastest = 0.07f;

  struct Params {
    double goal_velocity = 0.0;

    void prepare() {}
    std::vector<Setting> settings() {
      return {{"goal_velocity", &goal_velocity, "How fast the car must at least be at the goal."}};
    }
    [[nodiscard]] std::string check() const {
      return std::fabs(goal_velocity) <= 1e6 ? "" : "goal_velocity must be from -1e6 to 1e6";
    }
  };

  struct State {
    float position, velocity;
  };
  struct Action {
    float push;
  };

  static int time_limit(const Params&) { return 999; }
  static std::vector<Head> heads(const Params&) { return {range("push", -1.0f, 1.0f)}; }
  static int obs_size(const Params&) { return 2; }
  static void obs_bounds(const Params&, int, float* low, float* high) {
    low[0] = kLeft;
    high[0] = kRight;
    high[1] = kFastest;
    low[1] = -kFastest;
  }

  static void reset(State& state, int, const Params&, Rng& rng) {
    state = {static_cast<float>(-0.6 + 0.2 * static_cast<double>(rng.uniform())), 0.0f};
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action.push = values[0];
  }

  static void step(State& s, const Action& action, const Params& params, const Slots<1>&,
                   Outcome<1>& outcome) {
    const double downhill = 0.0025 * sin_cos(static_cast<double>(3.0f * s.position)).cos;
    s.velocity += action.push * 0.0015f - static_cast<float>(downhill);
    s.velocity = std::clamp(s.velocity, -kFastest, kFastest);
    s.position = std::clamp(s.position + s.velocity, kLeft, kRight);
    if (s.position == kLeft && s.velocity < 0.0f) s.velocity = 0.0f;
    const bool over = arrived(s, params);
    const auto push = static_cast<double>(action.push);
    outcome.terminated[0] = over ? 1 : 0;
    outcome.reward[0] = static_cast<float>((over ? 100.0 : 0.0) - push * push * 0.1);
  }

  static void observe(const State& state, int, const Params&, float* obs) {
    obs[0] = state.position;
    obs[1] = state.velocity;
  }

  static std::vector<Field> fields(State& state, int, const Params&) {
    return {{"position", &state.position}, {"velocity", &state.velocity}};
  }
  static std::string check(const State& state, int, const Params& params, bool running) {
    if (!(state.position >= kLeft && state.position <= kRight)) {
      return "position must be from -1.2 to 0.6";
    }
    if (!(std::fabs(state.velocity) <= kFastest)) return "velocity must be from -0.07 to 0.07";
    return running && arrived(state, params) ? "the car must not be at the goal" : "";
  }

 private:
  static bool arrived(const State& state, const Params& params) {
    return state.position >= kGoal && state.velocity >= static_cast<float>(params.goal_velocity);
  }
};

}  // namespace headwise

HEADWISE_ENV(MountainCarContinuous)
