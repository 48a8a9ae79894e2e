// One agent step of Platform for a register of slots; see core/isa.h. Every slot is computed in
// every frame and kept while it is playing; what is rare is skipped when no slot needs it.
namespace headwise::platform::HEADWISE_ISA {
#include "core/vectors.inl"

struct Body {
  Doubles x, y, vx, vy;
};

[[nodiscard]] inline Longs on_platform(Doubles x, Doubles y) noexcept {
  const Longs level = y == kTop;
  Longs above = {};
  if (any(level)) {
    for (int k = 0; k < 3; ++k) above |= (x >= kLeft[k] - kEntityWidth) & (x <= kRight[k]);
  }
  return level & above;
}

// What an action asks for, worked out once: divisions are dear, and a run has many frames.
struct Effort {
  Longs jumps;
  Doubles jump_speed, reach, run;  // `reach` is the speed that a jump of the given length needs

  Effort() = default;
  Effort(Doubles speed, Doubles strength) noexcept
      : jumps(speed > 0.0),
        jump_speed(speed),
        reach(strength / (2.0 * speed / kGravity + 1.0)),
        run(clamp(strength / kFrame, doubles(-kMaxAx), doubles(kMaxAx))) {}
};

// a, b. The action accelerates on the ground, gravity in the air.
inline void accelerate(Body& body, Longs on, const Effort& effort, Doubles shorter, Doubles lower,
                       Doubles slower) noexcept {
  Doubles ax = on ? effort.run : Doubles{}, ay = on ? Doubles{} : doubles(-kGravity);
  const Longs takes_off = on & effort.jumps;
  if (any(takes_off)) {
    const Doubles wanted =
        clamp(effort.reach - body.vx, doubles(-kMaxAx), kMaxVy - effort.jump_speed);
    const Doubles along = (wanted - shorter) / kFrame, up = (effort.jump_speed - lower) / kFrame;
    ax = takes_off ? clamp(along, doubles(-kMaxAx), doubles(kMaxAx)) : ax;
    ay = takes_off ? clamp(up, doubles(-kMaxAy), doubles(kMaxAy)) : ay;
  }
  const Doubles max_vx = on ? doubles(kMaxGroundVx) : doubles(kMaxVx);
  body.vx = clamp(body.vx + ax * kFrame - slower, Doubles{}, max_vx);
  body.vy = clamp(body.vy + ay * kFrame, doubles(-kMaxVy), doubles(kMaxVy));
}

// d. Platforms push the player out, along the axis of the smaller overlap.
inline void push_out(Body& body) noexcept {
  if (!any(body.y < kTop)) return;
  for (int k = 0; k < 3; ++k) {
    const double left = kLeft[k], right = kRight[k];
    const Doubles x = body.x, y = body.y;
    const Longs hit =
        (x < right) & (x + kEntityWidth > left) & (y < kTop) & (y + kEntityHeight > 0.0);
    const Doubles to_right = x > right - kEntityWidth ? doubles(right) : x;
    const Doubles beside = x < left ? doubles(left - kEntityWidth) : to_right;
    const Doubles to_top = y > kTop - kEntityHeight ? doubles(kTop) : y;
    const Doubles above = y < 0.0 ? doubles(-kEntityHeight) : to_top;
    const Longs aside = (beside != x) & ((above == y) | (abs(beside - x) < abs(above - y)));
    body.x = hit & aside ? beside : x;
    body.y = hit & ~aside ? above : y;
    body.vx = hit ? Doubles{} : body.vx;
    body.vy = hit & ~aside ? Doubles{} : body.vy;
  }
}

inline void draw_noise(Noise& noise, float scale, const Slots<kWidth>& slots,
                       std::uint32_t draw) noexcept {
  std::uint32_t words[4][kWidth];
  for (int lane = 0; lane < kWidth; lane += kDoubles) {
    philox_lanes(slots, lane, Purpose::kStep, draw, words);
  }
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < kWidth; ++i) {
      const NormalPair pair = normal_pair(words[d][i], words[d + 2][i]);
      noise.normals[d][i] = scale * pair.first;
      noise.normals[d + 2][i] = scale * pair.second;
    }
  }
}

[[nodiscard]] inline Doubles noise_of(const Noise& noise, int d, int lane) noexcept {
  Doubles v;
  for (int i = 0; i < kDoubles; ++i) v[i] = noise.normals[d][lane + i];
  return v;
}

inline void step(State& state, const Action& action, float scale, const Slots<kWidth>& slots,
                 float (&reward)[kWidth], std::int32_t (&terminated)[kWidth]) noexcept {
  constexpr int kParts = kWidth / kDoubles;
  Body bodies[kParts];
  Doubles enemy_x[kParts][2], enemy_dx[kParts][2], shorter[kParts], lower[kParts], frames[kParts];
  Longs playing[kParts], over[kParts], on[kParts];
  Effort efforts[kParts];
  Noise noise{};
  if (scale > 0.0f) draw_noise(noise, scale, slots, 0);
  for (int part = 0; part < kParts; ++part) {
    const int lane = part * kDoubles;
    bodies[part] = {load<Doubles>(state.x + lane), load<Doubles>(state.y + lane),
                    load<Doubles>(state.vx + lane), load<Doubles>(state.vy + lane)};
    for (int e = 0; e < 2; ++e) {
      enemy_x[part][e] = load<Doubles>(state.enemy_x[e] + lane);
      enemy_dx[part][e] = load<Doubles>(state.enemy_dx[e] + lane);
    }
    efforts[part] = {load<Doubles>(action.jump_speed + lane), load<Doubles>(action.strength + lane)};
    // What a jump lacks, along and up: drawn once, since a step has one take-off.
    shorter[part] = kJumpNoise * abs(noise_of(noise, 0, lane));
    lower[part] = kJumpNoise * abs(noise_of(noise, 1, lane));
    frames[part] = Doubles{};
    playing[part] = Longs{} - 1;
    over[part] = Longs{};
    on[part] = on_platform(bodies[part].x, bodies[part].y);
  }
  bool someone_plays = true;
  for (int frame = 0; frame < kMaxFrames && someone_plays; ++frame) {
    // One draw serves two frames: two numbers for the player, two for the enemy.
    if (scale > 0.0f && frame % 2 == 0) {
      draw_noise(noise, scale, slots, static_cast<std::uint32_t>(1 + frame / 2));
    }
    someone_plays = false;
    for (int part = 0; part < kParts; ++part) {
      if (!any(playing[part])) continue;
      const int lane = part * kDoubles;
      const Doubles slower = kSpeedNoise * abs(noise_of(noise, frame % 2, lane));
      const Doubles wander = kSpeedNoise * noise_of(noise, 2 + frame % 2, lane);
      const Body& old = bodies[part];
      Body body = old;
      accelerate(body, on[part], efforts[part], shorter[part], lower[part], slower);
      // c. The player moves, and the enemy that is near it.
      body.x = clamp(old.x + body.vx * kFrame, Doubles{}, doubles(kEnd));
      body.y = old.y + body.vy * kFrame;
      body.vx *= kDecay;
      const Longs second = old.x > kLeft[1];
      const Doubles left = second ? doubles(kLeft[1]) : doubles(kLeft[0]);
      const Doubles right =
          (second ? doubles(kRight[1]) : doubles(kRight[0])) - doubles(kEntityWidth);
      Doubles (&ex)[2] = enemy_x[part], (&edx)[2] = enemy_dx[part];
      const Doubles x = second ? ex[1] : ex[0], dx = second ? edx[1] : edx[0];
      const Longs inside = (x > left) & (x < right);
      const Doubles new_dx =
          clamp((inside ? dx : -dx) + wander, doubles(-kEnemySpeed), doubles(kEnemySpeed));
      const Doubles new_x = clamp(x + new_dx * kFrame, left, right);
      const Longs plays = playing[part], moves[2] = {plays & ~second, plays & second};
      for (int e = 0; e < 2; ++e) {
        ex[e] = moves[e] ? new_x : ex[e];
        edx[e] = moves[e] ? new_dx : edx[e];
      }
      push_out(body);
      // f. A fall, an enemy or the far end is the end; a run lasts a second, a jump till it lands.
      // The enemies are far apart, so only one of them can be met.
      const Doubles met = body.x > kBetween ? ex[1] : ex[0];
      const Longs ends = (body.y < kTop) | (body.x >= kEnd) |
                         ((abs(body.x - met) < kEntityWidth) & (abs(body.y - kTop) < kEntityHeight));
      const Longs jumps = efforts[part].jumps;
      const Longs run_ends = frame + 1 >= kRunFrames ? ~jumps : Longs{};
      bodies[part] = {plays ? body.x : old.x, plays ? body.y : old.y, plays ? body.vx : old.vx,
                      plays ? body.vy : old.vy};
      frames[part] = plays ? frames[part] + 1.0 : frames[part];
      over[part] |= plays & ends;
      on[part] = on_platform(body.x, body.y);
      playing[part] = plays & ~ends & ~run_ends & ~(jumps & on[part]);
      someone_plays |= any(playing[part]);
    }
  }
  for (int part = 0; part < kParts; ++part) {
    const int lane = part * kDoubles;
    for (int i = 0; i < kDoubles; ++i) {
      reward[lane + i] = static_cast<float>((bodies[part].x[i] - state.x[lane + i]) / kEnd);
      terminated[lane + i] = over[part][i] != 0 ? 1 : 0;
      state.frames[lane + i] = static_cast<std::int32_t>(frames[part][i]);
    }
    store(state.x + lane, bodies[part].x);
    store(state.y + lane, bodies[part].y);
    store(state.vx + lane, bodies[part].vx);
    store(state.vy + lane, bodies[part].vy);
    for (int e = 0; e < 2; ++e) {
      store(state.enemy_x[e] + lane, enemy_x[part][e]);
      store(state.enemy_dx[e] + lane, enemy_dx[part][e]);
    }
  }
}

}  // namespace headwise::platform::HEADWISE_ISA
