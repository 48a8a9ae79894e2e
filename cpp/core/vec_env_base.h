// What Python holds of a vector environment, whichever it is: one virtual call per step of all
// slots.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec.h"

namespace headwise {

// What happens to a slot whose episode has ended.
enum class Autoreset {
  kSameStep,  // it starts the next one at once: `obs` is the new start, `next_obs` the old end
  kNextStep,  // its next step ignores the action and brings the new start, with reward 0
  kDisabled,  // it must be reset before it may be stepped again
};

// The caller's arrays, one row for each slot. They are written in place at every step.
struct Buffers {
  std::int32_t* choices;         // (n, D) in: options of the choice heads
  float* ranges;                 // (n, C) in: values of the range heads, in the environment's units
  float* obs;                    // (n, O) what to act on now
  float* next_obs;               // (n, O) the true successor of the action just taken
  float* reward;                 // (n)
  bool* terminated;              // (n)
  bool* truncated;               // (n)
  float* episode_return;         // (n) of the episode that has just ended; else of the running one
  std::int32_t* episode_length;  // (n) likewise
};

class VecEnvBase {
 public:
  virtual ~VecEnvBase() = default;
  virtual void seed(std::span<const std::uint64_t> seeds, std::span<const std::uint32_t> lanes,
                    const bool* mask) = 0;
  virtual void reset(const bool* mask) = 0;
  virtual void step() = 0;
  virtual void step_units(const float* heads) = 0;
  [[nodiscard]] virtual std::string snapshot() const = 0;
  virtual void restore(std::string_view bytes) = 0;
  [[nodiscard]] virtual std::vector<Field> fields(int slot) = 0;
  virtual void accept_state(int slot) = 0;

  [[nodiscard]] int num_envs() const noexcept { return num_envs_; }
  [[nodiscard]] int time_limit() const noexcept { return time_limit_; }
  [[nodiscard]] int obs_size() const noexcept { return obs_size_; }
  [[nodiscard]] int num_choices() const noexcept { return num_choices_; }
  [[nodiscard]] int num_ranges() const noexcept { return num_ranges_; }
  [[nodiscard]] const std::vector<Head>& heads() const noexcept { return heads_; }
  [[nodiscard]] const std::vector<float>& obs_low() const noexcept { return obs_low_; }
  [[nodiscard]] const std::vector<float>& obs_high() const noexcept { return obs_high_; }
  void attach(const Buffers& buffers) noexcept { io_ = buffers; }

 protected:
  int num_envs_ = 0, obs_size_ = 0, num_choices_ = 0, num_ranges_ = 0;
  int time_limit_ = 0;  // 0 means none
  std::vector<Head> heads_;
  std::vector<float> obs_low_, obs_high_;
  Buffers io_{};
};

}  // namespace headwise
