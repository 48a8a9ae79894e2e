// How compiled learners step a compiled environment: the two are modules of their own, so what one
// hands to the other is plain C, in a capsule that keeps the environment alive.
#pragma once

namespace headwise {

struct EnvPort {
  static constexpr const char* kName = "headwise.EnvPort";  // of the capsule
  void* env;
  int rows, columns;  // of an action: slots and heads
  // One step of all slots, with actions as learners give them; null, or what is wrong.
  const char* (*step)(void* env, const float* heads) noexcept;
};

}  // namespace headwise
