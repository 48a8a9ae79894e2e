// HybridShoot: several targets on the unit square; one head selects a target, the others aim.
// Dependent: only the selected target can be hit. Independent: the shot hits whatever is nearest,
// every target alive and not selected costs something, and one number aims along a Hilbert curve.
// The paper has that cost in both modes, the authors' package in the second; a setting says which.
#pragma once

#include <algorithm>

#include "core/isa.h"
#include "core/registry.h"

namespace headwise {
namespace hybrid_shoot {

constexpr int kWidth = 16, kMaxTargets = 16;

struct State {
  float targets[kMaxTargets][2][kWidth];
  std::int32_t alive[kMaxTargets][kWidth];
};
struct Action {
  std::int32_t selected[kWidth];
  float x[kWidth], y[kWidth];
};
// The rules of a mode, as numbers: what does not apply is zero.
struct Rules {
  std::int32_t anyone;  // all bits set if a target can be hit that is not selected
  float reach_above;    // the smallest square of a distance that misses
  float step_reward, hit_reward, clear_reward, exposed_reward, miss_reward, dead_reward;
};

}  // namespace hybrid_shoot
}  // namespace headwise

#define HEADWISE_KERNEL "envs/hybrid_shoot_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// The cell that the Hilbert curve over a `width` x `width` grid (a power of two) visits as its
// d-th. It starts at (0, 0) and ends at (width - 1, 0).
[[nodiscard]] constexpr std::array<int, 2> hilbert_cell(int d, int width) noexcept {
  int x = 0, y = 0;
  for (int side = 1; side < width; side *= 2, d /= 4) {
    const int right = 1 & (d / 2), up = 1 & (d ^ right);
    if (up == 0) {
      if (right == 1) {
        x = side - 1 - x;
        y = side - 1 - y;
      }
      std::swap(x, y);
    }
    x += side * right;
    y += side * up;
  }
  return {x, y};
}

// The point of the unit square that a number in [0, 1] aims at; the curve spans it with its
// borders.
[[nodiscard]] inline std::array<float, 2> hilbert_point(float p, int width) noexcept {
  const int cells = width * width;
  const int d =
      std::clamp(static_cast<int>(std::floor(p * static_cast<float>(cells) + 0.5f)), 0, cells - 1);
  const auto [x, y] = hilbert_cell(d, width);
  const float last = static_cast<float>(width - 1);
  return {static_cast<float>(x) / last, static_cast<float>(y) / last};
}

struct HybridShoot {
  using State = hybrid_shoot::State;
  using Action = hybrid_shoot::Action;
  static constexpr const char* kName = "HybridShoot";
  static constexpr int kWidth = hybrid_shoot::kWidth, kNanoseconds = 20;
  static constexpr int kMaxTargets = hybrid_shoot::kMaxTargets;

  struct Params {
    Word mode{0, {"dependent", "independent"}};
    Word aim{0, {"as_mode", "xy", "scalar"}};
    Word view{1, kViews};
    Word exposed{0, {"as_mode", "always"}};
    int num_targets = 3, bins = 0, discrete_heads = 1, hilbert_width = 16;
    float hit_radius = 0.1f;
    float step_reward = -0.1f, hit_reward = 10.0f, clear_reward = 5.0f;
    float exposed_reward = -0.5f, miss_reward = -0.2f, dead_reward = -0.5f;

    [[nodiscard]] bool independent() const { return mode.value == 1; }
    [[nodiscard]] bool scalar_aim() const {
      return aim.value == 0 ? independent() : aim.value == 2;
    }
    [[nodiscard]] int num_heads() const { return scalar_aim() ? 2 : 3; }

    ViewedHeads viewed;
    hybrid_shoot::Rules rules{};
    void prepare() {
      const float reach = hit_radius * hit_radius;
      rules = {independent() ? -1 : 0,
               std::nextafter(reach, 2.0f * reach),
               step_reward,
               hit_reward,
               clear_reward,
               independent() || exposed.value == 1 ? exposed_reward : 0.0f,
               independent() ? 0.0f : miss_reward,
               independent() ? 0.0f : dead_reward};
      std::vector<Head> native = {choice("select", num_targets, 0.0f, 1.0f)};
      if (scalar_aim()) {
        native.push_back(range("aim", 0.0f, 1.0f, hilbert_width * hilbert_width));
      } else {
        native.push_back(range("aim_x", 0.0f, 1.0f));
        native.push_back(range("aim_y", 0.0f, 1.0f));
      }
      const int paper_bins = scalar_aim() ? 100 : 10;
      viewed = {std::move(native), num_discrete(view.value, num_heads(), discrete_heads),
                bins > 0 ? bins : paper_bins};
    }

    std::vector<Setting> settings() {
      return {
          {"mode", &mode, "Whether a target must be selected to be hit."},
          {"view", &view, "Which heads are discrete and which are continuous."},
          {"bins", &bins, "Bins of a discrete aiming head; 0 means 10, or 100 for a scalar aim."},
          {"discrete_heads", &discrete_heads, "Discrete heads in the hybrid view."},
          {"num_targets", &num_targets, "How many targets there are."},
          {"hit_radius", &hit_radius, "How near a shot must come (inclusive)."},
          {"aim", &aim, "By x and y, or by one number along a Hilbert curve."},
          {"hilbert_width", &hilbert_width, "Cells of the Hilbert curve along each side."},
          {"step_reward", &step_reward, "Reward of every step."},
          {"hit_reward", &hit_reward, "Reward of a hit."},
          {"clear_reward", &clear_reward, "Reward of the last hit, on top."},
          {"exposed_reward", &exposed_reward,
           "Reward for each target alive and not selected, before the shot."},
          {"exposed", &exposed,
           "When that is paid: as_mode is in independent mode, always is in both, as in the "
           "paper."},
          {"miss_reward", &miss_reward, "Dependent mode: reward of a missed shot."},
          {"dead_reward", &dead_reward, "Dependent mode: reward for selecting a dead target."},
      };
    }
    [[nodiscard]] std::string check() const {
      if (num_targets < 1 || num_targets > kMaxTargets) {
        return "num_targets must be from 1 to " + std::to_string(kMaxTargets);
      }
      if (!(hit_radius > 0.0f && hit_radius <= 2.0f)) return "hit_radius must be in (0, 2]";
      if (bins < 0 || bins == 1 || bins > 10'000) return "bins must be 0, or from 2 to 10000";
      if (discrete_heads < 1 || discrete_heads >= num_heads()) {
        return "discrete_heads must be from 1 to " + std::to_string(num_heads() - 1);
      }
      if (hilbert_width < 2 || hilbert_width > 1024 || (hilbert_width & (hilbert_width - 1)) != 0) {
        return "hilbert_width must be a power of two from 2 to 1024";
      }
      for (const float reward :
           {step_reward, hit_reward, clear_reward, exposed_reward, miss_reward, dead_reward}) {
        if (!std::isfinite(reward)) return "rewards must be finite";
      }
      return "";
    }
  };

  static int time_limit(const Params&) { return 5; }
  static std::vector<Head> heads(const Params& params) { return params.viewed.heads(); }
  static int obs_size(const Params& params) { return 3 * params.num_targets; }
  static void obs_bounds(const Params& params, int, float* low, float* high) {
    std::fill_n(low, obs_size(params), 0.0f);
    std::fill_n(high, obs_size(params), 1.0f);
  }

  static void reset(State& state, int i, const Params& params, Rng& rng) {
    for (int t = 0; t < params.num_targets; ++t) {
      state.targets[t][0][i] = rng.uniform();
      state.targets[t][1][i] = rng.uniform();
      state.alive[t][i] = 1;
    }
  }

  static void load(Action& action, int i, const Params& params, const float* values) {
    action.selected[i] = static_cast<int>(params.viewed.value(0, values));
    action.x[i] = params.viewed.value(1, values);
    if (params.scalar_aim()) {
      const auto [x, y] = hilbert_point(action.x[i], params.hilbert_width);
      action.x[i] = x;
      action.y[i] = y;
    } else {
      action.y[i] = params.viewed.value(2, values);
    }
  }

  static void step(State& state, const Action& action, const Params& params, const Slots<kWidth>&,
                   Outcome<kWidth>& outcome) {
    HEADWISE_DISPATCH(hybrid_shoot, step, state, action, params.rules, params.num_targets,
                      outcome.reward, outcome.terminated);
  }

  static void observe(const State& state, int i, const Params& params, float* obs) {
    for (int t = 0; t < params.num_targets; ++t, obs += 3) {
      obs[0] = state.targets[t][0][i];
      obs[1] = state.targets[t][1][i];
      obs[2] = static_cast<float>(state.alive[t][i]);
    }
  }

  static std::vector<Field> fields(State& state, int i, const Params& params) {
    return {{"targets", &state.targets[0][0][i], params.num_targets, 2, 2 * kWidth, kWidth},
            {"alive", &state.alive[0][i], params.num_targets, 0, kWidth}};
  }
  static std::string check(const State& state, int i, const Params& params, bool running) {
    bool any = false;
    for (int t = 0; t < params.num_targets; ++t) {
      for (const auto& x : state.targets[t]) {
        if (!(x[i] >= 0.0f && x[i] <= 1.0f)) return "targets must be in [0, 1]";
      }
      if ((state.alive[t][i] & ~1) != 0) return "alive must be 0 or 1";
      any = any || state.alive[t][i] == 1;
    }
    return any || !running ? "" : "a target must be alive";
  }
};

}  // namespace headwise

HEADWISE_ENV(HybridShoot)
