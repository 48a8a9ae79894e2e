// Contextual-Decoupler: a context says which of two heads earns the reward; the other one should
// rest at option 0. States are independent from step to step, so nothing but credit is hard.
#pragma once

#include "core/registry.h"

namespace headwise {

struct ContextualDecoupler {
  static constexpr const char* kName = "ContextualDecoupler";
  static constexpr int kWidth = 1, kNanoseconds = 20;

  struct Params {
    int num_options = 5;
    bool one_hot = false;
    float idle_penalty = 0.1f;

    void prepare() {}
    std::vector<Setting> settings() {
      return {
          {"num_options", &num_options, "Options of each head (the paper's N)."},
          {"one_hot", &one_hot, "Observe context and targets one-hot instead of as numbers."},
          {"idle_penalty", &idle_penalty, "What an inactive head pays for not resting at 0."},
      };
    }
    [[nodiscard]] std::string check() const {
      if (num_options < 2 || num_options > 10'000) return "num_options must be from 2 to 10000";
      if (!std::isfinite(idle_penalty)) return "idle_penalty must be finite";
      return "";
    }
  };

  struct State {
    std::int32_t context;
    std::int32_t targets[2];
  };
  struct Action {
    std::int32_t choices[2];
  };

  static int time_limit(const Params&) { return 100; }
  static std::vector<Head> heads(const Params& params) {
    return {choice("head_0", params.num_options), choice("head_1", params.num_options)};
  }
  static int obs_size(const Params& params) {
    return params.one_hot ? 2 + 2 * params.num_options : 3;
  }
  static void obs_bounds(const Params& params, int, float* low, float* high) {
    std::fill_n(low, obs_size(params), 0.0f);
    std::fill_n(high, obs_size(params), 1.0f);
    if (!params.one_hot) high[1] = high[2] = static_cast<float>(params.num_options - 1);
  }

  static void reset(State& state, int, const Params& params, Rng& rng) {
    state.context = rng.below(2);
    for (auto& target : state.targets) target = rng.below(params.num_options);
  }

  static void load(Action& action, int, const Params&, const float* values) {
    action = {{static_cast<std::int32_t>(values[0]), static_cast<std::int32_t>(values[1])}};
  }

  static void step(State& state, const Action& action, const Params& params, const Slots<1>& slots,
                   Outcome<1>& outcome) {
    const int active = state.context, idle = 1 - active;
    outcome.reward[0] = (action.choices[active] == state.targets[active] ? 1.0f : -1.0f) -
                        (action.choices[idle] != 0 ? params.idle_penalty : 0.0f);
    outcome.terminated[0] = 0;
    Rng rng = slots.rng(0, Purpose::kStep);
    reset(state, 0, params, rng);
  }

  static void observe(const State& state, int, const Params& params, float* obs) {
    if (!params.one_hot) {
      obs[0] = static_cast<float>(state.context);
      obs[1] = static_cast<float>(state.targets[0]);
      obs[2] = static_cast<float>(state.targets[1]);
      return;
    }
    std::fill_n(obs, obs_size(params), 0.0f);
    obs[state.context] = 1.0f;
    obs[2 + state.targets[0]] = 1.0f;
    obs[2 + params.num_options + state.targets[1]] = 1.0f;
  }

  static std::vector<Field> fields(State& state, int, const Params&) {
    return {{"context", &state.context}, {"targets", state.targets, 2}};
  }
  static std::string check(const State& state, int, const Params& params, bool) {
    if (state.context < 0 || state.context > 1) return "context must be 0 or 1";
    for (const int target : state.targets) {
      if (target < 0 || target >= params.num_options) {
        return "targets must be from 0 to " + std::to_string(params.num_options - 1);
      }
    }
    return "";
  }
};

}  // namespace headwise

HEADWISE_ENV(ContextualDecoupler)
