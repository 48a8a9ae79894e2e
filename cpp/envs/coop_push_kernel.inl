// The physics of CoopPush for a register of slots; see core/isa.h.
namespace headwise::coop_push::HEADWISE_ISA {
#include "core/vectors.inl"

struct Point {
  Floats x, y;
};
[[nodiscard]] inline Point load_point(const float (&at)[2][kWidth], int lane) noexcept {
  return {load<Floats>(at[0] + lane), load<Floats>(at[1] + lane)};
}
inline void store_point(float (&at)[2][kWidth], int lane, const Point& point) noexcept {
  store(at[0] + lane, point.x);
  store(at[1] + lane, point.y);
}

// What parts a body at `a` from one at `b` where they overlap: `share` of the overlap, away from
// `b`, or along +x if they coincide.
[[nodiscard]] inline Point parting(const Point& a, const Point& b, float radius,
                                   float share) noexcept {
  const Floats dx = a.x - b.x, dy = a.y - b.y, square = dx * dx + dy * dy;
  const Ints together = square < 1e-30f;
  const Floats distance = sqrt(together ? floats(1.0f) : square);
  const Floats overlap = radius - (together ? Floats{} : distance);
  const Floats push = (overlap > 0.0f ? overlap : Floats{}) * share / distance;
  return {push * (together ? floats(1.0f) : dx), push * dy};
}

// How much nearer each boulder gets to the nearest landmark that it has still to visit. The
// difference of squares over the sum of roots: two nearly equal roots would lose half the digits.
template <class Sizes>
[[nodiscard]] inline Floats progress(const State& state, const Sizes& sizes, int b, int lane,
                                     const Point& moved) noexcept {
  const Point at = load_point(state.boulders[b], lane);
  Floats before = floats(1e30f), after = floats(1.0f), squares = {};
  for (int l = 0; l < sizes.landmarks; ++l) {
    const Ints open = load<Ints>(state.flags(sizes.visit_all, l, b) + lane) == 0;
    const Point goal = load_point(state.landmarks[l], lane);
    const Floats dx = at.x - goal.x, dy = at.y - goal.y;
    const Floats new_dx = dx + moved.x, new_dy = dy + moved.y;
    const Floats square = dx * dx + dy * dy;
    const Ints nearer = open & (square < before);
    before = nearer ? square : before;
    after = nearer ? new_dx * new_dx + new_dy * new_dy : after;
    squares = nearer ? moved.x * (dx + new_dx) + moved.y * (dy + new_dy) : squares;
  }
  return -squares / (sqrt(before) + sqrt(after) + 1e-30f);
}

// One environment step of the slots `lane`, `lane` + 1, ...; returns their rewards.
template <class Sizes>
[[nodiscard]] inline Floats play(State& state, const Sizes& sizes, const Physics& physics,
                                 int lane) noexcept {
  Point particles[Sizes::kParticles], velocities[Sizes::kParticles], moved[Sizes::kBoulders];
  for (int p = 0; p < sizes.particles; ++p) {
    particles[p] = load_point(state.particles[p].at, lane);
    velocities[p] = load_point(state.particles[p].velocity, lane);
  }
  Floats reward = {};
  for (int step = 0; step < physics.steps; ++step) {
    // 1. Where the particles want to be.
    for (int p = 0; p < sizes.particles; ++p) {
      particles[p].x += velocities[p].x * physics.dt;
      particles[p].y += velocities[p].y * physics.dt;
    }
    // 2, 3. What particles and other boulders do to each boulder, from where it was.
    for (int b = 0; b < sizes.boulders; ++b) {
      const Point at = load_point(state.boulders[b], lane);
      Point sum = {};
      for (int p = 0; p < sizes.particles; ++p) {
        const Point by = parting(at, particles[p], kTouch, 1.0f / physics.weight);
        sum.x += by.x;
        sum.y += by.y;
      }
      for (int other = 0; other < b; ++other) {
        const Point by = parting(at, load_point(state.boulders[other], lane), kCollide, 0.5f);
        sum.x += by.x;
        sum.y += by.y;
        moved[other].x -= by.x;
        moved[other].y -= by.y;
      }
      moved[b] = sum;
    }
    // 4, 5. Progress is counted, and the boulders move.
    for (int b = 0; b < sizes.boulders; ++b) {
      if (physics.dense) reward += progress(state, sizes, b, lane, moved[b]);
      Point at = load_point(state.boulders[b], lane);
      at.x += moved[b].x;
      at.y += moved[b].y;
      store_point(state.boulders[b], lane, at);
    }
    // 6. Boulders push the particles out, each particle by the sum of its overlaps.
    for (int p = 0; p < sizes.particles; ++p) {
      const Point at = particles[p];
      for (int b = 0; b < sizes.boulders; ++b) {
        const Point by = parting(at, load_point(state.boulders[b], lane), kTouch, 1.0f);
        particles[p].x += by.x;
        particles[p].y += by.y;
      }
    }
    // 7. Landmarks newly visited.
    for (int b = 0; b < sizes.boulders; ++b) {
      const Point at = load_point(state.boulders[b], lane);
      for (int l = 0; l < sizes.landmarks; ++l) {
        const Point goal = load_point(state.landmarks[l], lane);
        const Floats dx = at.x - goal.x, dy = at.y - goal.y;
        const Ints there = dx * dx + dy * dy < kTouch * kTouch;
        std::int32_t* flags = state.flags(sizes.visit_all, l, b) + lane;
        const Ints done = load<Ints>(flags);
        reward += there & (done == 0) ? floats(physics.visit_reward) : Floats{};
        store(flags, done | (there & 1));
      }
    }
  }
  for (int p = 0; p < sizes.particles; ++p) {
    store_point(state.particles[p].at, lane, particles[p]);
  }
  return reward;
}

inline void step(State& state, const Action& action, const Sizes& sizes,
                 const Physics& physics, float (&reward)[kWidth]) noexcept {
  for (int lane = 0; lane < kWidth; lane += kFloats) {
    for (int p = 0; p < sizes.particles; ++p) {  // no particle is faster than 1
      const Point v = load_point(action.move[p], lane);
      const Floats square = v.x * v.x + v.y * v.y;
      const Floats length = sqrt(square > 1.0f ? square : floats(1.0f));
      store_point(state.particles[p].velocity, lane, {v.x / length, v.y / length});
    }
    const Floats gain = sizes.are_default() ? play(state, DefaultSizes{}, physics, lane)
                                            : play(state, sizes, physics, lane);
    store(reward + lane, gain);
  }
}

}  // namespace headwise::coop_push::HEADWISE_ISA
