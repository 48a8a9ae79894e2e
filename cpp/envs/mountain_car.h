// MountainCar: a car too weak for the hill is to gain speed in the valley. Gymnasium's
// MountainCar-v0, step by step (Moore, 1990).
#pragma once

#include <algorithm>

#include "core/registry.h"
#include "core/trig.h"

namespace headwise {

struct MountainCar {
  static constexpr const char* kName = "MountainCar";
  static constexpr int kWidth = 1, kNanoseconds = 50;
  static constexpr double kLeft = -1.2, kRight = 0.6, kGoal = 0.5, kFastest = 0.07;

  struct Params {
    double goal_velocity = 0.0;

    void prepare() {}
    std::vector<Setting> settings() {
      return {{"goal_velocity", &goal_velocity, "How fast the car must at least be at the goal."}};
    }
    [[nodiscard]] std::string check() const {
      return std::isfinite(goal_velocity) ? "" : "goal_velocity must be finite";
    }
  };

  struct State {
    double position, velocity;
  };
  struct Action {
    double force;
  };

  static int time_limit(const Params&) { return 200; }
  static std::vector<Head> heads(const Params&) { return {choice("push", 3)}; }
  static int obs_size(const Params&) { return 2; }
  static void obs_bounds(const Params&, int, float* low, float* high) {
    low[0] = static_cast<float>(kLeft);
    high[0] = static_cast<float>(kRight);
    high[1] = static_cast<float>(kFastest);
    low[1] = -high[1];
  }

  static void reset(State& state, int, const Params&, Rng& rng) {
    state = {-0.6 + 0.2 * static_cast<double>(rng.uniform()), 0.0};
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action.force = (static_cast<double>(values[0]) - 1.0) * 0.001;
  }

  static void step(State& s, const Action& action, const Params& params, const Slots<1>&,
                   Outcome<1>& outcome) {
    s.velocity += action.force + sin_cos(3 * s.position).cos * -0.0025;
    s.velocity = std::clamp(s.velocity, -kFastest, kFastest);
    s.position = std::clamp(s.position + s.velocity, kLeft, kRight);
    if (s.position == kLeft && s.velocity < 0.0) s.velocity = 0.0;
    outcome.terminated[0] = arrived(s, params) ? 1 : 0;
    outcome.reward[0] = -1.0f;
  }

  static void observe(const State& state, int, const Params&, float* obs) {
    obs[0] = static_cast<float>(state.position);
    obs[1] = static_cast<float>(state.velocity);
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
    return state.position >= kGoal && state.velocity >= params.goal_velocity;
  }
};

}  // namespace headwise

HEADWISE_ENV(MountainCar)
