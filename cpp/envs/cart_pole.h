// CartPole: a cart is pushed left or right so that the pole on it stays up. Gymnasium's
// CartPole-v1, step by step (Barto, Sutton and Anderson, 1983).
#pragma once

#include <limits>

#include "core/registry.h"
#include "core/trig.h"

namespace headwise {

struct CartPole {
  static constexpr const char* kName = "CartPole";
  static constexpr int kWidth = 1, kNanoseconds = 60;
  static constexpr double kEdge = 2.4, kFallen = 12 * 2 * kPi / 360, kFastest = 1000.0;

  struct Params {
    bool sutton_barto_reward = false;

    void prepare() {}
    std::vector<Setting> settings() {
      return {{"sutton_barto_reward", &sutton_barto_reward,
               "Reward 0 for every step and -1 for a fall, instead of 1 for every step."}};
    }
    [[nodiscard]] std::string check() const { return ""; }
  };

  struct State {
    double x, x_dot, theta, theta_dot;
  };
  struct Action {
    double force;
  };

  static int time_limit(const Params&) { return 500; }
  static std::vector<Head> heads(const Params&) { return {choice("push", 2)}; }
  static int obs_size(const Params&) { return 4; }
  static void obs_bounds(const Params&, int, float* low, float* high) {
    constexpr float kAny = std::numeric_limits<float>::infinity();
    const float bounds[4] = {static_cast<float>(2 * kEdge), kAny, static_cast<float>(2 * kFallen),
                             kAny};
    for (int i = 0; i < 4; ++i) {
      high[i] = bounds[i];
      low[i] = -bounds[i];
    }
  }

  static void reset(State& state, int, const Params&, Rng& rng) {
    for (double* part : {&state.x, &state.x_dot, &state.theta, &state.theta_dot}) {
      *part = -0.05 + 0.1 * static_cast<double>(rng.uniform());
    }
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action.force = values[0] != 0.0f ? 10.0 : -10.0;
  }

  static void step(State& s, const Action& action, const Params& params, const Slots<1>&,
                   Outcome<1>& outcome) {
    const auto [sine, cosine] = sin_cos(s.theta);
    const double push = (action.force + 0.05 * (s.theta_dot * s.theta_dot) * sine) / 1.1;
    const double turn =
        (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * (cosine * cosine) / 1.1));
    const double pull = push - 0.05 * turn * cosine / 1.1;
    s.x += 0.02 * s.x_dot;
    s.x_dot += 0.02 * pull;
    s.theta += 0.02 * s.theta_dot;
    s.theta_dot += 0.02 * turn;
    const bool over = !stands(s);
    outcome.terminated[0] = over ? 1 : 0;
    outcome.reward[0] = !params.sutton_barto_reward ? 1.0f : over ? -1.0f : 0.0f;
  }

  static void observe(const State& state, int, const Params&, float* obs) {
    obs[0] = static_cast<float>(state.x);
    obs[1] = static_cast<float>(state.x_dot);
    obs[2] = static_cast<float>(state.theta);
    obs[3] = static_cast<float>(state.theta_dot);
  }

  static std::vector<Field> fields(State& state, int, const Params&) {
    return {{"x", &state.x},
            {"x_dot", &state.x_dot},
            {"theta", &state.theta},
            {"theta_dot", &state.theta_dot}};
  }
  static std::string check(const State& state, int, const Params&, bool running) {
    for (const double part : {state.x, state.x_dot, state.theta, state.theta_dot}) {
      if (!std::isfinite(part)) return "x, x_dot, theta and theta_dot must be finite";
    }
    if (running && !stands(state)) {
      return "x must be from -2.4 to 2.4, and theta from -0.2094 to 0.2094 (12 degrees)";
    }
    // Who moves faster than a quarter of this is over an edge after the next step.
    if (running &&
        !(std::fabs(state.x_dot) <= kFastest && std::fabs(state.theta_dot) <= kFastest)) {
      return "x_dot and theta_dot must be from -1000 to 1000";
    }
    return "";
  }

 private:
  static bool stands(const State& state) {
    return state.x >= -kEdge && state.x <= kEdge && state.theta >= -kFallen &&
           state.theta <= kFallen;
  }
};

}  // namespace headwise

HEADWISE_ENV(CartPole)
