// CoopPush: particles push boulders onto landmarks. Particles move freely at unit speed at most,
// boulders have no inertia and yield to overlap. The physics is float32, in coop_push_kernel.inl.
#pragma once

#include <algorithm>

#include "core/isa.h"
#include "core/registry.h"

namespace headwise::coop_push {

constexpr int kWidth = 16, kMaxParticles = 16, kMaxBoulders = 8, kMaxLandmarks = 8;
constexpr float kTouch = 6.0f;     // particle and boulder, and boulder and landmark
constexpr float kCollide = 10.0f;  // boulder and boulder

// The sizes of the default layout, known to the compiler, which then keeps it in registers.
struct DefaultSizes {
  static constexpr int kParticles = 4, kBoulders = 1;
  static constexpr int particles = 4, boulders = 1, landmarks = 2;
  static constexpr bool visit_all = true;
};
struct Sizes {
  static constexpr int kParticles = kMaxParticles, kBoulders = kMaxBoulders;
  int particles = 0, boulders = 0, landmarks = 0;
  bool visit_all = true;

  [[nodiscard]] bool are_default() const noexcept {
    return particles == DefaultSizes::particles && boulders == DefaultSizes::boulders &&
           landmarks == DefaultSizes::landmarks && visit_all == DefaultSizes::visit_all;
  }
};
struct Physics {
  int steps;
  float dt, weight, visit_reward;
  bool dense;
};

// Coordinates are [x or y][slot]. What changes together lies together, so that a block that is
// stepped touches few cache lines.
struct State {
  float boulders[kMaxBoulders][2][kWidth], landmarks[kMaxLandmarks][2][kWidth];
  std::int32_t finished[kMaxBoulders][kWidth];
  struct Particle {
    float at[2][kWidth], velocity[2][kWidth];
  } particles[kMaxParticles];
  std::int32_t visited[kMaxLandmarks][kMaxBoulders][kWidth];

  // Whether boulder b has nothing more to gain at landmark l, for every slot: 0 or 1.
  [[nodiscard]] std::int32_t* flags(bool visit_all, int l, int b) noexcept {
    return visit_all ? visited[l][b] : finished[b];
  }
  [[nodiscard]] const std::int32_t* flags(bool visit_all, int l, int b) const noexcept {
    return visit_all ? visited[l][b] : finished[b];
  }
};

struct Action {
  float move[kMaxParticles][2][kWidth];
};

}  // namespace headwise::coop_push

#define HEADWISE_KERNEL "envs/coop_push_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

struct CoopPush {
  using State = coop_push::State;
  using Action = coop_push::Action;
  static constexpr const char* kName = "CoopPush";
  static constexpr int kWidth = coop_push::kWidth, kNanoseconds = 80;
  static constexpr float kObsScale = 25.0f;
  // No-op and eight directions; diagonals are shortened to unit length like any action.
  static constexpr float kDirections[9][2] = {{0, 0}, {0, -1}, {1, -1}, {1, 0},  {1, 1},
                                              {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}};

  struct Params {
    Word layout{0, {"default", "independent"}};
    Word view{1, kViews};
    Word visit{0, {"as_layout", "all", "one"}};
    Word observation{0, {"full", "positions"}};
    Points particles, boulders, landmarks;
    bool dense = true, shuffle = true;
    int num_physics_steps = 10, discrete_heads = 0;
    float dt = 0.2f, boulder_weight = 5.0f, visit_reward = 5.0f, start_noise = 0.0f;

    [[nodiscard]] bool custom() const {
      return !particles.empty() || !boulders.empty() || !landmarks.empty();
    }
    [[nodiscard]] bool full() const { return observation.value == 0; }
    [[nodiscard]] int num_flags() const {
      return sizes.boulders * (sizes.visit_all ? sizes.landmarks : 1);
    }

    struct Layout {
      Points particles, boulders, landmarks;
    };
    Layout start;
    coop_push::Sizes sizes;
    coop_push::Physics physics{};
    int num_discrete_particles = 0;
    void prepare() {
      if (custom()) {
        start = {particles, boulders, landmarks};
      } else if (layout.value == 0) {
        start = {{{5, 5}, {-5, 5}, {-5, -5}, {5, -5}}, {{0, 0}}, {{15, 0}, {-15, 0}}};
      } else {
        start = {{{-8, 30}, {-8, -30}}, {{0, 30}, {0, -30}}, {{20, 30}, {20, -30}}};
      }
      sizes = {static_cast<int>(start.particles.size()), static_cast<int>(start.boulders.size()),
               static_cast<int>(start.landmarks.size()),
               visit.value == 0 ? layout.value == 0 || custom() : visit.value == 1};
      physics = {num_physics_steps, dt, boulder_weight, sizes.visit_all ? visit_reward : 1.0f,
                 dense};
      num_discrete_particles = num_discrete(
          view.value, sizes.particles, discrete_heads > 0 ? discrete_heads : sizes.particles / 2);
    }

    std::vector<Setting> settings() {
      return {
          {"layout", &layout, "Where everything starts, unless points are given."},
          {"particles", &particles, "Custom layout: starting points of the particles."},
          {"boulders", &boulders, "Custom layout: starting points of the boulders."},
          {"landmarks", &landmarks, "Custom layout: points of the landmarks."},
          {"view", &view, "Which particles choose a direction and which give two numbers."},
          {"discrete_heads", &discrete_heads,
           "Particles that choose a direction in the hybrid view; 0 means half of them."},
          {"visit", &visit,
           "Whether every boulder must visit all landmarks or one; the layout's own choice is all, "
           "and one for the independent layout."},
          {"dense", &dense, "Reward boulders for coming nearer to their next landmark."},
          {"dt", &dt, "Seconds of one physics step."},
          {"num_physics_steps", &num_physics_steps, "Physics steps of one environment step."},
          {"boulder_weight", &boulder_weight, "How hard a boulder is to push."},
          {"visit_reward", &visit_reward,
           "Reward of a landmark visited, when all must be; it is 1 when one suffices."},
          {"shuffle", &shuffle, "Deal the particles' starting points anew at every reset."},
          {"start_noise", &start_noise, "Width of uniform noise on particles and boulders."},
          {"observation", &observation,
           "full: velocities and visits too. positions: the paper's, which is not Markov."},
      };
    }
    [[nodiscard]] std::string check() const {
      if (custom() && (particles.empty() || boulders.empty() || landmarks.empty())) {
        return "a custom layout needs particles, boulders and landmarks";
      }
      const auto too_many = [](const Points& points, int most) {
        return static_cast<int>(points.size()) > most;
      };
      if (too_many(particles, coop_push::kMaxParticles)) return "at most 16 particles";
      if (too_many(boulders, coop_push::kMaxBoulders)) return "at most 8 boulders";
      if (too_many(landmarks, coop_push::kMaxLandmarks)) return "at most 8 landmarks";
      for (const Points* points : {&particles, &boulders, &landmarks}) {
        for (const auto& point : *points) {
          if (!(std::abs(point[0]) <= 1e4f && std::abs(point[1]) <= 1e4f)) {
            return "points must be finite, within 10000 of the origin";
          }
        }
      }
      if (!(dt > 0.0f && dt <= 10.0f)) return "dt must be in (0, 10]";
      if (num_physics_steps < 1 || num_physics_steps > 1000) {
        return "num_physics_steps must be from 1 to 1000";
      }
      if (!(boulder_weight >= 1.0f && boulder_weight <= 1e6f)) {
        return "boulder_weight must be from 1 to 1000000";
      }
      if (!(start_noise >= 0.0f && start_noise <= 100.0f)) {
        return "start_noise must be from 0 to 100";
      }
      if (!std::isfinite(visit_reward)) return "visit_reward must be finite";
      const int count = custom() ? static_cast<int>(particles.size()) : layout.value == 0 ? 4 : 2;
      if (view.value == 1 && count < 2) return "a hybrid view needs two particles";
      if (discrete_heads < 0 || (discrete_heads > 0 && discrete_heads >= count)) {
        return "discrete_heads must be from 0 to " + std::to_string(count - 1);
      }
      return "";
    }
  };

  static int time_limit(const Params& params) {
    return params.layout.value == 1 && !params.custom() ? 60 : 200;
  }
  static std::vector<Head> heads(const Params& params) {
    std::vector<Head> list;
    for (int p = 0; p < params.num_discrete_particles; ++p) {
      list.push_back(choice("particle_" + std::to_string(p), 9));
    }
    for (int p = params.num_discrete_particles; p < params.sizes.particles; ++p) {
      const std::string name = "particle_" + std::to_string(p);
      list.push_back(range(name + "_x", -1.0f, 1.0f));
      list.push_back(range(name + "_y", -1.0f, 1.0f));
    }
    return list;
  }
  static int obs_size(const Params& params) {
    const int positions =
        2 * (params.sizes.particles + params.sizes.boulders + params.sizes.landmarks);
    return params.full() ? positions + 2 * params.sizes.particles + params.num_flags() : positions;
  }
  static void obs_bounds(const Params& params, int limit, float* low, float* high) {
    float reach = 0.0f;
    for (const Points* points :
         {&params.start.particles, &params.start.boulders, &params.start.landmarks}) {
      for (const auto& point : *points) {
        reach = std::max({reach, std::abs(point[0]), std::abs(point[1])});
      }
    }
    // Bodies that start on top of each other part once; after that a step moves a particle by its
    // speed, and overlap pushes by a few radii at most.
    const int bodies = params.sizes.particles + params.sizes.boulders;
    const float step =
        params.dt * static_cast<float>(params.num_physics_steps) + coop_push::kCollide;
    reach += params.start_noise + coop_push::kCollide * static_cast<float>(bodies) +
             step * static_cast<float>(limit > 0 ? limit : 1'000'000);
    const int size = obs_size(params);
    std::fill_n(low, size, -reach / kObsScale);
    std::fill_n(high, size, reach / kObsScale);
    if (!params.full()) return;
    for (int p = 0; p < params.sizes.particles; ++p) {
      for (int c = 2; c < 4; ++c) {
        low[4 * p + c] = -1.0f;
        high[4 * p + c] = 1.0f;
      }
    }
    for (int f = size - params.num_flags(); f < size; ++f) {
      low[f] = 0.0f;
      high[f] = 1.0f;
    }
  }

  static void reset(State& state, int i, const Params& params, Rng& rng) {
    int order[coop_push::kMaxParticles];
    for (int p = 0; p < params.sizes.particles; ++p) {
      order[p] = p;
      if (params.shuffle) std::swap(order[p], order[rng.below(p + 1)]);
    }
    const auto place = [&](float (&point)[2][kWidth], const std::array<float, 2>& start,
                           float noise) {
      for (std::size_t c = 0; c < 2; ++c) {
        point[c][i] = start[c] + (noise > 0.0f ? noise * (rng.uniform() - 0.5f) : 0.0f);
      }
    };
    for (int p = 0; p < params.sizes.particles; ++p) {
      place(state.particles[p].at, params.start.particles[static_cast<std::size_t>(order[p])],
            params.start_noise);
      state.particles[p].velocity[0][i] = state.particles[p].velocity[1][i] = 0.0f;
    }
    for (int b = 0; b < params.sizes.boulders; ++b) {
      place(state.boulders[b], params.start.boulders[static_cast<std::size_t>(b)],
            params.start_noise);
      state.finished[b][i] = 0;
      for (int l = 0; l < params.sizes.landmarks; ++l) state.visited[l][b][i] = 0;
    }
    for (int l = 0; l < params.sizes.landmarks; ++l) {
      place(state.landmarks[l], params.start.landmarks[static_cast<std::size_t>(l)], 0.0f);
    }
  }

  static void load(Action& action, int i, const Params& params, const float* values) {
    for (int p = 0; p < params.sizes.particles; ++p) {
      const bool discrete = p < params.num_discrete_particles;
      const float* move = discrete ? kDirections[static_cast<int>(values[p])]
                                   : values + 2 * p - params.num_discrete_particles;
      action.move[p][0][i] = move[0];
      action.move[p][1][i] = move[1];
    }
  }

  static void step(State& state, const Action& action, const Params& params, const Slots<kWidth>&,
                   Outcome<kWidth>& outcome) {
    const coop_push::Sizes& sizes = params.sizes;
    HEADWISE_DISPATCH(coop_push, step, state, action, sizes, params.physics, outcome.reward);
    std::fill_n(outcome.terminated, kWidth, 1);
    for (int b = 0; b < sizes.boulders; ++b) {
      for (int l = 0; l < (sizes.visit_all ? sizes.landmarks : 1); ++l) {
        const std::int32_t* done = state.flags(sizes.visit_all, l, b);
        for (int i = 0; i < kWidth; ++i) outcome.terminated[i] &= done[i];
      }
    }
  }

  static void observe(const State& state, int i, const Params& params, float* obs) {
    const auto position = [&](const float (&at)[2][kWidth]) {
      // Multiplied in double, a quotient by 25 is as exact and several times as fast.
      *obs++ = static_cast<float>(double{at[0][i]} * (1.0 / kObsScale));
      *obs++ = static_cast<float>(double{at[1][i]} * (1.0 / kObsScale));
    };
    const coop_push::Sizes& sizes = params.sizes;
    for (int p = 0; p < sizes.particles; ++p) {
      const State::Particle& particle = state.particles[p];
      position(particle.at);
      if (params.full()) {
        *obs++ = particle.velocity[0][i];
        *obs++ = particle.velocity[1][i];
      }
    }
    for (int b = 0; b < sizes.boulders; ++b) position(state.boulders[b]);
    for (int l = 0; l < sizes.landmarks; ++l) position(state.landmarks[l]);
    if (!params.full()) return;
    for (int l = 0; l < (sizes.visit_all ? sizes.landmarks : 1); ++l) {
      for (int b = 0; b < sizes.boulders; ++b) {
        *obs++ = static_cast<float>(state.flags(sizes.visit_all, l, b)[i]);
      }
    }
  }

  static std::vector<Field> fields(State& state, int i, const Params& params) {
    std::vector<Field> list = {
        {"particles", &state.particles[0].at[0][i], params.sizes.particles, 2, 4 * kWidth, kWidth},
        {"velocities", &state.particles[0].velocity[0][i], params.sizes.particles, 2, 4 * kWidth,
         kWidth},
        {"boulders", &state.boulders[0][0][i], params.sizes.boulders, 2, 2 * kWidth, kWidth},
        {"landmarks", &state.landmarks[0][0][i], params.sizes.landmarks, 2, 2 * kWidth, kWidth}};
    if (params.sizes.visit_all) {
      list.push_back({"visited", &state.visited[0][0][i], params.sizes.landmarks,
                      params.sizes.boulders, coop_push::kMaxBoulders * kWidth, kWidth});
    } else {
      list.push_back({"finished", &state.finished[0][i], params.sizes.boulders, 0, kWidth});
    }
    return list;
  }
  static std::string check(const State& state, int i, const Params& params, bool) {
    const auto bad = [i](const float (&point)[2][kWidth], float most) {
      return !(std::abs(point[0][i]) <= most && std::abs(point[1][i]) <= most);
    };
    constexpr float kFar = 1e9f;  // no float32 gets there by the largest steps that settings allow
    for (int p = 0; p < params.sizes.particles; ++p) {
      if (bad(state.particles[p].at, kFar)) return "particles must be finite";
      if (bad(state.particles[p].velocity, 1.0f)) return "velocities must be from -1 to 1";
    }
    for (int l = 0; l < params.sizes.landmarks; ++l) {
      if (bad(state.landmarks[l], kFar)) return "landmarks must be finite";
    }
    for (int b = 0; b < params.sizes.boulders; ++b) {
      if (bad(state.boulders[b], kFar)) return "boulders must be finite";
      if ((state.finished[b][i] & ~1) != 0) return "finished must be 0 or 1";
      for (int l = 0; l < params.sizes.landmarks; ++l) {
        if ((state.visited[l][b][i] & ~1) != 0) return "visited must be 0 or 1";
      }
    }
    return "";
  }
};

}  // namespace headwise

HEADWISE_ENV(CoopPush)
