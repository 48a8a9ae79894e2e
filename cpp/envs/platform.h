// Platform (Masson et al. 2016): run, hop or leap, each with its own strength, over three platforms
// with an enemy on each of the first two. The reward is the progress made; falling or touching an
// enemy ends the episode. One agent step is many frames of 0.05 s, played in double precision by
// platform_kernel.inl.
#pragma once

#include <algorithm>

#include "core/isa.h"
#include "core/registry.h"

namespace headwise::platform {

constexpr int kWidth = 8;
// The world. Platforms are boxes with their top at kTop; player and enemies are equal boxes.
constexpr double kLeft[3] = {0, 475, 985}, kRight[3] = {250, 750, 1035};
constexpr double kTop = 40, kEntityWidth = 20, kEntityHeight = 30, kEnd = 1035;
constexpr double kBetween = 350;  // the first enemy is always to the left of this, the second never
constexpr double kFrame = 0.05, kGravity = 9.8, kDecay = 0.99;
constexpr double kMaxVx = 100, kMaxVy = 200, kMaxGroundVx = 70;
constexpr double kMaxAx = (kMaxVx - kMaxGroundVx) / kFrame, kMaxAy = kMaxVy / kFrame;
constexpr double kHopSpeed = 35, kLeapSpeed = 25, kEnemySpeed = 30;
constexpr double kSpeedNoise = 0.5 * kFrame, kJumpNoise = 1.0;
constexpr float kMaxRun = 30, kMaxHop = 720, kMaxLeap = 430;
constexpr int kRunFrames = 20, kMaxFrames = 2000;

struct State {
  double x[kWidth], y[kWidth], vx[kWidth], vy[kWidth];
  double enemy_x[2][kWidth], enemy_dx[2][kWidth];
  std::int32_t frames[kWidth];  // how many the last agent step took
};
struct Action {
  double jump_speed[kWidth];  // 0 for a run
  double strength[kWidth];
};
struct Noise {
  float normals[4][kWidth];
};

}  // namespace headwise::platform

#define HEADWISE_KERNEL "envs/platform_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

struct Platform {
  using State = platform::State;
  using Action = platform::Action;
  static constexpr const char* kName = "Platform";
  static constexpr int kWidth = platform::kWidth, kNanoseconds = 1200;

  struct Params {
    Word view{1, kViews};
    int bins = 10, discrete_heads = 1, param_heads = 3;
    float noise = 1.0f;
    bool observe_time = false;

    ViewedHeads viewed;
    void prepare() {
      viewed.native = {choice("kind", 3), range("run", 0, platform::kMaxRun)};
      if (param_heads == 3) {
        viewed.native.push_back(range("hop", 0, platform::kMaxHop));
        viewed.native.push_back(range("leap", 0, platform::kMaxLeap));
      } else {
        viewed.native.push_back(range("jump", 0, 1));
      }
      viewed.discrete = num_discrete(view.value, 1 + param_heads, discrete_heads);
      viewed.bins = bins;
    }

    std::vector<Setting> settings() {
      return {
          {"view", &view, "Which heads are discrete and which are continuous."},
          {"bins", &bins, "Bins of a discrete strength."},
          {"discrete_heads", &discrete_heads, "Discrete heads in the hybrid view."},
          {"param_heads", &param_heads,
           "3: a strength each for run, hop and leap. 2: one for run and one for both jumps, as a "
           "fraction of the largest."},
          {"noise", &noise, "Scale of the noise on player and enemies; 0 is deterministic."},
          {"observe_time", &observe_time,
           "Observe a tenth number: the steps so far, as a share of 200, from which on it is 1."},
      };
    }
    [[nodiscard]] std::string check() const {
      if (param_heads != 2 && param_heads != 3) return "param_heads must be 2 or 3";
      if (bins < 2 || bins > 10'000) return "bins must be from 2 to 10000";
      if (discrete_heads < 1 || discrete_heads > param_heads) {
        return "discrete_heads must be from 1 to " + std::to_string(param_heads);
      }
      if (!(noise >= 0.0f && noise <= 100.0f)) return "noise must be from 0 to 100";
      return "";
    }
  };

  static constexpr int kTimeLimit = 200;
  static int time_limit(const Params&) { return kTimeLimit; }
  static std::vector<Head> heads(const Params& params) { return params.viewed.heads(); }
  static int obs_size(const Params& params) { return params.observe_time ? 10 : 9; }
  static void obs_bounds(const Params& params, int, float* low, float* high) {
    std::fill_n(low, obs_size(params), 0.0f);
    std::fill_n(high, obs_size(params), 1.0f);
  }

  static void reset(State& state, int i, const Params&, Rng&) {
    state.x[i] = state.vx[i] = state.vy[i] = 0;
    state.y[i] = platform::kTop;
    for (int e = 0; e < 2; ++e) {
      state.enemy_x[e][i] = platform::kRight[e] - platform::kEntityWidth;
      state.enemy_dx[e][i] = -platform::kEnemySpeed;
    }
    state.frames[i] = 0;
  }

  static void load(Action& action, int i, const Params& params, const float* values) {
    const int kind = static_cast<int>(params.viewed.value(0, values));
    const bool shared = params.param_heads == 2;
    const double value = params.viewed.value(shared ? 1 + (kind > 0) : 1 + kind, values);
    action.jump_speed[i] = kind == 0 ? 0.0 : kind == 1 ? platform::kHopSpeed : platform::kLeapSpeed;
    action.strength[i] =
        shared && kind > 0 ? value * (kind == 1 ? platform::kMaxHop : platform::kMaxLeap) : value;
  }

  static void step(State& state, const Action& action, const Params& params,
                   const Slots<kWidth>& slots, Outcome<kWidth>& outcome) {
    HEADWISE_DISPATCH(platform, step, state, action, params.noise, slots, outcome.reward,
                      outcome.terminated);
  }

  static void observe(const State& state, int i, const Params& params, float* obs,
                      int elapsed = 0) {
    const double x = state.x[i];
    const int e = x > platform::kLeft[1] ? 1 : 0;
    const int k = x < platform::kLeft[1] ? 0 : x < platform::kLeft[2] ? 1 : 2;
    static constexpr double kWidths[4] = {250, 275, 50, 0}, kGaps[3] = {225, 235, 0};
    const double scaled[9] = {
        (x + platform::kEntityWidth) / (platform::kEnd + platform::kEntityWidth),
        state.vx[i] / platform::kMaxVx,
        state.enemy_x[e][i] / platform::kEnd,
        (state.enemy_dx[e][i] + platform::kEnemySpeed) / (2 * platform::kEnemySpeed),
        kWidths[k] / 275,
        kWidths[k + 1] / 275,
        kGaps[k] / 235,
        platform::kLeft[k] / platform::kEnd,
        0.0};
    for (int o = 0; o < 9; ++o) obs[o] = static_cast<float>(scaled[o]);
    if (params.observe_time) {
      obs[9] = static_cast<float>(std::min(elapsed, kTimeLimit)) / static_cast<float>(kTimeLimit);
    }
  }

  static std::vector<Field> fields(State& state, int i, const Params&) {
    return {{"x", &state.x[i]},
            {"y", &state.y[i]},
            {"vx", &state.vx[i]},
            {"vy", &state.vy[i]},
            {"enemy_x", &state.enemy_x[0][i], 2, 0, kWidth},
            {"enemy_dx", &state.enemy_dx[0][i], 2, 0, kWidth},
            {"frames", &state.frames[i]}};
  }
  static std::string check(const State& state, int i, const Params&, bool running) {
    const auto within = [](double value, double low, double high) {
      return value >= low && value <= high;
    };
    if (!within(state.x[i], 0, platform::kEnd)) return "x must be from 0 to 1035";
    if (!std::isfinite(state.y[i])) return "y must be finite";
    if (!within(state.vx[i], 0, platform::kMaxVx)) return "vx must be from 0 to 100";
    if (!within(state.vy[i], -platform::kMaxVy, platform::kMaxVy)) {
      return "vy must be from -200 to 200";
    }
    if (running) {
      // A run may end within a frame of its edge, before there has been a moment to fall.
      bool on = false;
      for (int k = 0; k < 3; ++k) {
        on |= within(state.x[i], platform::kLeft[k] - platform::kEntityWidth,
                     platform::kRight[k] + platform::kMaxGroundVx * platform::kFrame);
      }
      if (!on || state.y[i] != platform::kTop) {
        return "the player must stand on a platform, at y 40";
      }
      if (state.vy[i] > 0.0) return "vy must be 0 or less: a jump ends on the ground";
    }
    if (!within(state.frames[i], 0, platform::kMaxFrames)) return "frames must be from 0 to 2000";
    for (int e = 0; e < 2; ++e) {
      if (!within(state.enemy_x[e][i], platform::kLeft[e],
                  platform::kRight[e] - platform::kEntityWidth)) {
        return "enemy_x must be on the enemies' platforms (0 to 230, 475 to 730)";
      }
      if (!within(state.enemy_dx[e][i], -platform::kEnemySpeed, platform::kEnemySpeed)) {
        return "enemy_dx must be from -30 to 30";
      }
    }
    return "";
  }
};

}  // namespace headwise

HEADWISE_ENV(Platform)
