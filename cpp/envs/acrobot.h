// Acrobot: a double pendulum with a motor at its elbow is to swing its free end above a line.
// Gymnasium's Acrobot-v1, step by step (Sutton, 1996), with the equations of motion of the book.
#pragma once

#include <algorithm>

#include "core/registry.h"
#include "core/trig.h"

namespace headwise {

struct Acrobot {
  static constexpr const char* kName = "Acrobot";
  static constexpr int kWidth = 1, kNanoseconds = 400;
  static constexpr double kFastest1 = 4 * kPi, kFastest2 = 9 * kPi, kSeconds = 0.2;

  struct Params {
    void prepare() {}
    std::vector<Setting> settings() { return {}; }
    [[nodiscard]] std::string check() const { return ""; }
  };

  struct State {
    double theta1, theta2, dtheta1, dtheta2;
  };
  struct Action {
    double torque;
  };

  static int time_limit(const Params&) { return 500; }
  static std::vector<Head> heads(const Params&) { return {choice("torque", 3)}; }
  static int obs_size(const Params&) { return 6; }
  static void obs_bounds(const Params&, int, float* low, float* high) {
    std::fill_n(high, 4, 1.0f);
    high[4] = static_cast<float>(kFastest1);
    high[5] = static_cast<float>(kFastest2);
    for (int i = 0; i < 6; ++i) low[i] = -high[i];
  }

  static void reset(State& state, int, const Params&, Rng& rng) {
    for (double* part : {&state.theta1, &state.theta2, &state.dtheta1, &state.dtheta2}) {
      *part = static_cast<float>(-0.1 + 0.2 * static_cast<double>(rng.uniform()));
    }
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action.torque = static_cast<double>(values[0]) - 1.0;
  }

  static void step(State& state, const Action& action, const Params&, const Slots<1>&,
                   Outcome<1>& outcome) {
    // The fourth-order method of Runge and Kutta.
    constexpr double kHalf = kSeconds / 2.0;
    const State k1 = slope(state, action.torque);
    const State k2 = slope(moved(state, kHalf, k1), action.torque);
    const State k3 = slope(moved(state, kHalf, k2), action.torque);
    const State k4 = slope(moved(state, kSeconds, k3), action.torque);
    const auto sum = [](double a, double b, double c, double d) { return a + 2 * b + 2 * c + d; };
    const State mean = {sum(k1.theta1, k2.theta1, k3.theta1, k4.theta1),
                        sum(k1.theta2, k2.theta2, k3.theta2, k4.theta2),
                        sum(k1.dtheta1, k2.dtheta1, k3.dtheta1, k4.dtheta1),
                        sum(k1.dtheta2, k2.dtheta2, k3.dtheta2, k4.dtheta2)};
    state = moved(state, kSeconds / 6.0, mean);
    state.theta1 = wrapped(state.theta1);
    state.theta2 = wrapped(state.theta2);
    state.dtheta1 = std::clamp(state.dtheta1, -kFastest1, kFastest1);
    state.dtheta2 = std::clamp(state.dtheta2, -kFastest2, kFastest2);
    const bool over = above_the_line(state);
    outcome.terminated[0] = over ? 1 : 0;
    outcome.reward[0] = over ? 0.0f : -1.0f;
  }

  static void observe(const State& state, int, const Params&, float* obs) {
    const SinCos first = sin_cos(state.theta1), second = sin_cos(state.theta2);
    obs[0] = static_cast<float>(first.cos);
    obs[1] = static_cast<float>(first.sin);
    obs[2] = static_cast<float>(second.cos);
    obs[3] = static_cast<float>(second.sin);
    obs[4] = static_cast<float>(state.dtheta1);
    obs[5] = static_cast<float>(state.dtheta2);
  }

  static std::vector<Field> fields(State& state, int, const Params&) {
    return {{"theta1", &state.theta1},
            {"theta2", &state.theta2},
            {"dtheta1", &state.dtheta1},
            {"dtheta2", &state.dtheta2}};
  }
  static std::string check(const State& state, int, const Params&, bool running) {
    if (!(std::fabs(state.theta1) <= kPi && std::fabs(state.theta2) <= kPi)) {
      return "theta1 and theta2 must be from -pi to pi";
    }
    if (!(std::fabs(state.dtheta1) <= kFastest1 && std::fabs(state.dtheta2) <= kFastest2)) {
      return "dtheta1 must be from -4 pi to 4 pi, and dtheta2 from -9 pi to 9 pi";
    }
    return running && above_the_line(state) ? "the free end must not be above the line" : "";
  }

 private:
  // How fast each part of the state changes.
  static State slope(const State& s, double torque) {
    const SinCos elbow = sin_cos(s.theta2);
    const double d1 = 0.25 + (1.25 + elbow.cos) + 1.0 + 1.0, d2 = (0.25 + 0.5 * elbow.cos) + 1.0;
    const double phi2 = 0.5 * 9.8 * sin_cos(s.theta1 + s.theta2 - kPi / 2.0).cos;
    const double phi1 = -0.5 * (s.dtheta2 * s.dtheta2) * elbow.sin -
                        s.dtheta2 * s.dtheta1 * elbow.sin +
                        1.5 * 9.8 * sin_cos(s.theta1 - kPi / 2.0).cos + phi2;
    const double second =
        (torque + d2 / d1 * phi1 - 0.5 * (s.dtheta1 * s.dtheta1) * elbow.sin - phi2) /
        (0.25 + 1.0 - d2 * d2 / d1);
    return {s.dtheta1, s.dtheta2, -(d2 * second + phi1) / d1, second};
  }
  static State moved(const State& s, double by, const State& d) {
    return {s.theta1 + by * d.theta1, s.theta2 + by * d.theta2, s.dtheta1 + by * d.dtheta1,
            s.dtheta2 + by * d.dtheta2};
  }
  static double wrapped(double angle) {
    while (angle > kPi) angle -= 2 * kPi;
    while (angle < -kPi) angle += 2 * kPi;
    return angle;
  }
  static bool above_the_line(const State& state) {
    return -sin_cos(state.theta1).cos - sin_cos(state.theta2 + state.theta1).cos > 1.0;
  }
};

}  // namespace headwise

HEADWISE_ENV(Acrobot)
