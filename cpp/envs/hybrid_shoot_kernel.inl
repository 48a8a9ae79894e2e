// One step of HybridShoot for a register of slots; see core/isa.h.
namespace headwise::hybrid_shoot::HEADWISE_ISA {
#include "core/vectors.inl"

inline void step(State& state, const Action& action, const Rules& rules, int num_targets,
                 float (&reward)[kWidth], std::int32_t (&cleared)[kWidth]) noexcept {
  for (int lane = 0; lane < kWidth; lane += kFloats) {
    const Ints selected = load<Ints>(action.selected + lane);
    const Floats x = load<Floats>(action.x + lane), y = load<Floats>(action.y + lane);
    Floats gain = floats(rules.step_reward);
    // The nearest target that can be hit; ties go to the first. A shot at the very edge hits.
    Floats nearest = floats(rules.reach_above);
    Ints hit = Ints{} - 1, left = {}, selected_alive = {};
    for (int t = 0; t < num_targets; ++t) {
      const Ints alive = load<Ints>(state.alive[t] + lane) != 0, chosen = selected == t;
      const Floats dx = x - load<Floats>(state.targets[t][0] + lane);
      const Floats dy = y - load<Floats>(state.targets[t][1] + lane);
      const Floats square = dx * dx + dy * dy;
      const Ints hits = alive & (chosen | rules.anyone) & (square < nearest);
      nearest = hits ? square : nearest;
      hit = hits ? Ints{} + t : hit;
      left -= alive;
      selected_alive |= chosen & alive;
      // Exposure is charged before the shot: a target that dies unselected still costs its share.
      gain += alive & ~chosen ? floats(rules.exposed_reward) : Floats{};
    }
    const Ints hits = hit >= 0, clears = hits & (left == 1);
    gain += hits ? floats(rules.hit_reward) : Floats{};
    gain += clears ? floats(rules.clear_reward) : Floats{};
    gain += ~hits & selected_alive ? floats(rules.miss_reward) : Floats{};
    gain += ~selected_alive ? floats(rules.dead_reward) : Floats{};
    for (int t = 0; t < num_targets; ++t) {
      const Ints alive = load<Ints>(state.alive[t] + lane);
      store(state.alive[t] + lane, hit == t ? Ints{} : alive);
    }
    store(reward + lane, gain);
    store(cleared + lane, clears & 1);
  }
}

}  // namespace headwise::hybrid_shoot::HEADWISE_ISA
