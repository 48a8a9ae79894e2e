// Pendulum: a motor too weak to lift the pendulum is to swing it up and hold it there. Gymnasium's
// Pendulum-v1, step by step.
#pragma once

#include <algorithm>

#include "core/registry.h"
#include "core/trig.h"

namespace headwise {

struct Pendulum {
  static constexpr const char* kName = "Pendulum";
  static constexpr int kWidth = 1, kNanoseconds = 70;
  static constexpr double kFastest = 8.0, kSeconds = 0.05, kMostTurned = 1e9;

  struct Params {
    double g = 10.0;

    void prepare() {}
    std::vector<Setting> settings() { return {{"g", &g, "The acceleration of gravity."}}; }
    [[nodiscard]] std::string check() const {
      return std::fabs(g) <= 1e6 ? "" : "g must be from -1e6 to 1e6";
    }
  };

  struct State {
    double theta, theta_dot;  // from upright; it is not wrapped around
  };
  struct Action {
    float torque;
  };

  static int time_limit(const Params&) { return 200; }
  static std::vector<Head> heads(const Params&) { return {range("torque", -2.0f, 2.0f)}; }
  static int obs_size(const Params&) { return 3; }
  static void obs_bounds(const Params&, int, float* low, float* high) {
    high[0] = high[1] = 1.0f;
    high[2] = static_cast<float>(kFastest);
    for (int i = 0; i < 3; ++i) low[i] = -high[i];
  }

  static void reset(State& state, int, const Params&, Rng& rng) {
    state.theta = -kPi + 2 * kPi * static_cast<double>(rng.uniform());
    state.theta_dot = -1.0 + 2.0 * static_cast<double>(rng.uniform());
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action.torque = values[0];
  }

  static void step(State& s, const Action& action, const Params& params, const Slots<1>&,
                   Outcome<1>& outcome) {
    const float u = action.torque;
    const double angle = std::fmod(s.theta + kPi, 2 * kPi);  // exact
    const double off = (angle < 0.0 ? angle + 2 * kPi : angle) - kPi;
    const double cost =
        off * off + 0.1 * (s.theta_dot * s.theta_dot) + static_cast<double>(0.001f * (u * u));
    const double speed =
        s.theta_dot +
        (3 * params.g / 2.0 * sin_cos(s.theta).sin + static_cast<double>(3.0f * u)) * kSeconds;
    s.theta_dot = std::clamp(speed, -kFastest, kFastest);
    s.theta += s.theta_dot * kSeconds;
    outcome.terminated[0] = 0;
    outcome.reward[0] = static_cast<float>(-cost);
  }

  static void observe(const State& state, int, const Params&, float* obs) {
    const auto [sine, cosine] = sin_cos(state.theta);
    obs[0] = static_cast<float>(cosine);
    obs[1] = static_cast<float>(sine);
    obs[2] = static_cast<float>(state.theta_dot);
  }

  static std::vector<Field> fields(State& state, int, const Params&) {
    return {{"theta", &state.theta}, {"theta_dot", &state.theta_dot}};
  }
  static std::string check(const State& state, int, const Params&, bool) {
    if (!(std::fabs(state.theta) <= kMostTurned)) return "theta must be from -1e9 to 1e9";
    return std::fabs(state.theta_dot) <= kFastest ? "" : "theta_dot must be from -8 to 8";
  }
};

}  // namespace headwise

HEADWISE_ENV(Pendulum)
