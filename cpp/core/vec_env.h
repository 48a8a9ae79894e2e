// Many slots of one environment: time limits, autoreset, episode statistics, threads, snapshots.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checksum.h"
#include "core/env.h"
#include "core/thread_pool.h"
#include "core/units.h"
#include "core/vec_env_base.h"

namespace headwise {

template <Env E>
class VecEnv final : public VecEnvBase {
 public:
  static constexpr int W = E::kWidth;
  // Nanoseconds of work below which a second thread costs more than it brings.
  static constexpr double kThreadsPay = 4'000.0;
  using Params = typename E::Params;

  VecEnv(int num_envs, Params params, int time_limit, Autoreset autoreset, int num_threads)
      : params_(std::move(params)),
        autoreset_(autoreset),
        blocks_(static_cast<std::size_t>((num_envs + W - 1) / W)),
        threads_(static_cast<double>(num_envs) * E::kNanoseconds < kThreadsPay
                     ? 1
                     : std::min(num_threads, static_cast<int>(blocks_.size())),
                 static_cast<int>(blocks_.size()), [this](int begin, int end) {
                   for (int b = begin; b < end; ++b) step_block(b);
                 }) {
    num_envs_ = num_envs;
    time_limit_ = time_limit;
    heads_ = E::heads(params_);
    for (const Head& head : heads_) {
      if (head.options > 0) {
        options_.push_back(static_cast<std::uint32_t>(head.options));
      } else {
        lows_.push_back(head.low);
        highs_.push_back(head.high);
      }
    }
    static_assert(W <= units::kCopies);
    units_.emplace(heads_);
    values_.resize(blocks_.size() * W * heads_.size());
    num_choices_ = static_cast<int>(options_.size());
    num_ranges_ = static_cast<int>(lows_.size());
    obs_size_ = E::obs_size(params_);
    obs_low_.resize(static_cast<std::size_t>(obs_size_));
    obs_high_.resize(static_cast<std::size_t>(obs_size_));
    E::obs_bounds(params_, time_limit_, obs_low_.data(), obs_high_.data());
    // Slots that only fill up the last block are stepped with it, so they too need a state.
    for (Block& block : blocks_) {
      for (int i = 0; i < W; ++i) begin_episode(block, i);
    }
  }

  void seed(std::span<const std::uint64_t> seeds, std::span<const std::uint32_t> lanes,
            const bool* mask) override {
    for (int n = 0; n < num_envs_; ++n) {
      if (mask != nullptr && !mask[n]) continue;
      Slots<W>& slots = block_of(n).slots;
      slots.seed[n % W] = seeds[static_cast<std::size_t>(n)];
      slots.lane[n % W] = lanes[static_cast<std::size_t>(n)];
      slots.clock[n % W] = 0;
    }
  }

  void reset(const bool* mask) override {
    if (mask != nullptr && !started_) {
      throw Fault(std::string(E::kName) + ": the first reset must be of all slots.");
    }
    started_ = true;
    for (int n = 0; n < num_envs_; ++n) {
      if (mask != nullptr && !mask[n]) continue;
      Block& block = block_of(n);
      const int i = n % W;
      begin_episode(block, i);
      show(n);
      forget(n);
      ++block.slots.clock[i];
    }
  }

  void step() override {
    require_start();
    check_actions();
    threads_.run();
  }

  // The learner's form of an action: an option's number, or a range as a number from -1 to 1.
  void step_units(const float* heads) override {
    require_start();
    const std::size_t count = static_cast<std::size_t>(num_envs_) * heads_.size();
    if (autoreset_ != Autoreset::kDisabled && units_->fit(heads, count)) {
      given_ = heads;  // every thread translates its own rows
      threads_.run();
      given_ = nullptr;
      return;
    }
    for (int n = 0; n < num_envs_; ++n) translate(heads, n);
    check_actions();
    threads_.run();
  }

  // A signature, the blocks as they are, and their checksum.
  [[nodiscard]] std::string snapshot() const override {
    const std::string_view blocks(reinterpret_cast<const char*>(blocks_.data()), size_of_blocks());
    const std::uint64_t sum = checksum(blocks);
    std::string bytes = signature(kVersion);
    bytes.reserve(bytes.size() + blocks.size() + sizeof(sum));
    bytes.append(blocks).append(reinterpret_cast<const char*>(&sum), sizeof(sum));
    return bytes;
  }

  void restore(std::string_view bytes) override {
    const std::string former = signature(kFormerVersion);
    const std::string expected = bytes.starts_with(former) ? former : signature(kVersion);
    const std::size_t size = size_of_blocks();
    std::uint64_t sum = 0;
    if (bytes.size() != expected.size() + size + sizeof(sum) || !bytes.starts_with(expected)) {
      throw Fault(
          std::string(E::kName) +
          ": the snapshot is of another environment, of other settings, of another time limit or "
          "autoreset mode, or of another number of slots.");
    }
    const std::string_view blocks = bytes.substr(expected.size(), size);
    std::memcpy(&sum, blocks.data() + size, sizeof(sum));
    if (sum != checksum(blocks)) {
      throw Fault(std::string(E::kName) + ": the snapshot is damaged.");
    }
    // Whoever forges a snapshot can work out its checksum too, and parts of a state are indices:
    // nothing of it is believed before every slot has been looked at.
    std::vector<Block> restored(blocks_.size());
    std::memcpy(static_cast<void*>(restored.data()), blocks.data(), size);
    for (int n = 0; n < static_cast<int>(restored.size()) * W; ++n) {
      check_restored(restored[static_cast<std::size_t>(n / W)], n);
    }
    blocks_.swap(restored);
    started_ = true;
    for (int n = 0; n < num_envs_; ++n) {
      const Block& block = block_of(n);
      show(n);
      io_.reward[n] = 0.0f;
      io_.terminated[n] = block.ended[n % W] == kTerminated;
      io_.truncated[n] = block.ended[n % W] == kTruncated;
      io_.episode_return[n] = block.episode_return[n % W];
      io_.episode_length[n] = block.elapsed[n % W];
    }
  }

  [[nodiscard]] std::vector<Field> fields(int slot) override {
    Block& block = block_of(slot);
    std::vector<Field> list = E::fields(block.state, slot % W, params_);
    list.push_back({"elapsed", &block.elapsed[slot % W]});
    return list;
  }

  // Says whether the state of a slot that Python has just written is possible, and shows it.
  void accept_state(int slot) override {
    Block& block = block_of(slot);
    check_state(block, slot, true);
    block.ended[slot % W] = 0;
    show(slot);
  }

 private:
  struct Block {
    typename E::State state;
    Slots<W> slots;
    std::int32_t elapsed[W];
    std::int32_t ended[W];  // 0 while it is running
    float episode_return[W];
  };
  static_assert(std::is_trivially_copyable_v<Block>);
  static constexpr std::int32_t kTerminated = 1, kTruncated = 2;
  static constexpr std::int32_t kMaxElapsed = 1'000'000'000;  // where the count of steps stops
  // Of snapshots. The former one did not name the time limit and the autoreset mode.
  static constexpr int kFormerVersion = 2, kVersion = 3;

  void require_start() const {
    if (!started_) throw Fault(std::string(E::kName) + ": step before reset. Call reset() first.");
  }

  Block& block_of(int slot) { return blocks_[static_cast<std::size_t>(slot / W)]; }
  [[nodiscard]] std::ptrdiff_t row(int slot) const {
    return static_cast<std::ptrdiff_t>(slot) * obs_size_;
  }

  void check_restored(const Block& block, int slot) const {
    const std::int32_t ended = block.ended[slot % W];
    const bool real = slot < num_envs_;
    const bool can_end = real && autoreset_ != Autoreset::kSameStep;
    if (ended != 0 && !(can_end && (ended == kTerminated || ended == kTruncated))) {
      refuse_state(slot, "an episode cannot have ended that way");
    }
    check_state(block, slot, real && ended == 0);
  }

  // Refuses what no episode can come to. A slot that only fills up the last block goes on for ever,
  // from whatever would be the end of an episode.
  void check_state(const Block& block, int slot, bool running) const {
    const int i = slot % W;
    const bool limited = time_limit_ > 0 && slot < num_envs_;
    const std::int32_t most = limited ? time_limit_ - (running ? 1 : 0) : kMaxElapsed;
    if (block.elapsed[i] < 0 || block.elapsed[i] > most) {
      refuse_state(slot, "elapsed must be from 0 to " + std::to_string(most));
    }
    const std::string complaint = E::check(block.state, i, params_, running);
    if (!complaint.empty()) refuse_state(slot, complaint);
  }

  [[noreturn]] static void refuse_state(int slot, const std::string& complaint) {
    throw Fault(std::string(E::kName) + ": impossible state for slot " + std::to_string(slot) +
                ": " + complaint + ".");
  }

  void begin_episode(Block& block, int i) {
    Rng rng = block.slots.rng(i, Purpose::kReset);
    E::reset(block.state, i, params_, rng);
    block.elapsed[i] = 0;
    block.ended[i] = 0;
    block.episode_return[i] = 0.0f;
  }

  // What slot i sees, which may tell how many steps its episode has had.
  void observe(const Block& block, int i, float* obs) const {
    if constexpr (requires { E::observe(block.state, i, params_, obs, block.elapsed[i]); }) {
      E::observe(block.state, i, params_, obs, block.elapsed[i]);
    } else {
      E::observe(block.state, i, params_, obs);
    }
  }

  void show(int slot) {
    const Block& block = block_of(slot);
    observe(block, slot % W, io_.obs + row(slot));
    std::copy_n(io_.obs + row(slot), obs_size_, io_.next_obs + row(slot));
  }

  // Writes the action of a slot, given in the learner's form, into the arrays, to be checked there:
  // what is no option becomes one that is refused, and what is no unit stays out of range.
  void translate(const float* heads, int n) {
    heads += static_cast<std::ptrdiff_t>(n) * (num_choices_ + num_ranges_);
    std::int32_t* choices = io_.choices + n * num_choices_;
    for (int h = 0; h < num_choices_; ++h) {
      const bool fits = heads[h] >= 0.0f && heads[h] < 1e9f;
      const std::int32_t option = fits ? static_cast<std::int32_t>(heads[h]) : -1;
      choices[h] = static_cast<float>(option) == heads[h] ? option : -1;
    }
    const float* units = heads + num_choices_;
    float* ranges = io_.ranges + n * num_ranges_;
    for (int h = 0; h < num_ranges_; ++h) {
      const auto r = static_cast<std::size_t>(h);
      const float value = units::value_of(units[h], lows_[r], highs_[r]);
      const bool unit = units[h] >= -1.0f && units[h] <= 1.0f;
      ranges[h] = unit ? value : lows_[r] + (units[h] + 1.0f) * 0.5f * (highs_[r] - lows_[r]);
    }
  }

  // The actions of a block's slots, one value for each head: an option's number, or a number in the
  // environment's units. Units have been checked, and are translated many at once.
  const float* block_values(int b, int count) {
    const std::size_t num_heads = heads_.size(), first = static_cast<std::size_t>(b) * W;
    float* const values = values_.data() + first * num_heads;
    const std::size_t all = static_cast<std::size_t>(count) * num_heads;
    if (given_ != nullptr) {
      units_->translate(given_ + first * num_heads, all, values);
      return values;
    }
    float* value = values;
    for (std::size_t n = first; n < first + static_cast<std::size_t>(count); ++n) {
      const std::int32_t* choices = io_.choices + n * options_.size();
      const float* ranges = io_.ranges + n * lows_.size();
      for (std::size_t h = 0; h < options_.size(); ++h) *value++ = static_cast<float>(choices[h]);
      for (std::size_t h = 0; h < lows_.size(); ++h) *value++ = ranges[h];
    }
    return values;
  }

  // Everything is checked before anything moves, so a refused step changes nothing. All is well
  // nearly always, so the question is asked of all slots at once and the culprit sought afterwards.
  void check_actions() const {
    int bad = 0;
    const std::uint32_t* options = options_.data();
    const float *low = lows_.data(), *high = highs_.data();
    for (int n = 0; n < num_envs_; ++n) {
      const std::int32_t* choices = io_.choices + n * num_choices_;
      const float* ranges = io_.ranges + n * num_ranges_;
      for (int h = 0; h < num_choices_; ++h) {
        bad |= static_cast<int>(static_cast<std::uint32_t>(choices[h]) >= options[h]);
      }
      for (int h = 0; h < num_ranges_; ++h) {
        bad |= static_cast<int>(!(ranges[h] >= low[h])) | static_cast<int>(!(ranges[h] <= high[h]));
      }
    }
    if (autoreset_ != Autoreset::kSameStep) {
      for (const Block& block : blocks_) {
        for (int i = 0; i < W; ++i) bad |= block.ended[i];
      }
    }
    if (bad != 0) {
      for (int n = 0; n < num_envs_; ++n) check_action(n);
    }
  }

  void check_action(int n) const {
    if (blocks_[static_cast<std::size_t>(n / W)].ended[n % W] != 0) {
      if (autoreset_ == Autoreset::kNextStep) return;  // the action is ignored
      throw Fault(std::string(E::kName) + ": the episode of slot " + std::to_string(n) +
                  " has ended. Reset it: reset(options={\"reset_mask\": ...}).");
    }
    for (int h = 0; h < num_choices_; ++h) {
      const Head& head = heads_[static_cast<std::size_t>(h)];
      const std::int32_t value = io_.choices[n * num_choices_ + h];
      if (value < 0 || value >= head.options) {
        refuse(n, head, std::to_string(value),
               "whole numbers from 0 to " + std::to_string(head.options - 1));
      }
    }
    for (int h = 0; h < num_ranges_; ++h) {
      const Head& head = heads_[static_cast<std::size_t>(num_choices_ + h)];
      const float value = io_.ranges[n * num_ranges_ + h];
      if (!(value >= head.low && value <= head.high)) {
        refuse(n, head, std::to_string(value),
               std::to_string(head.low) + " to " + std::to_string(head.high));
      }
    }
  }

  [[noreturn]] static void refuse(int slot, const Head& head, const std::string& got,
                                  const std::string& allowed) {
    throw Fault(std::string(E::kName) + ": the action of slot " + std::to_string(slot) +
                " is out of range at head '" + head.name + "'; got " + got +
                "; allowed: " + allowed + ".");
  }

  void step_block(int b) {
    Block& block = blocks_[static_cast<std::size_t>(b)];
    const int first = b * W, count = std::min(W, num_envs_ - first);
    const float* const values = block_values(b, count);
    const int num_heads = num_choices_ + num_ranges_;
    typename E::Action action;
    Outcome<W> outcome;
    for (int i = 0; i < W; ++i) {
      // Slots that only fill up the block, or wait for their next-step reset, take some action.
      const bool real = i < count && block.ended[i] == 0;
      E::load(action, i, params_, real ? values + i * num_heads : units_->idle());
    }
    E::step(block.state, action, params_, block.slots, outcome);
    std::int32_t waited[W];  // the slots that have only been waiting for this reset
    std::copy_n(block.ended, W, waited);
    account(block, first, count, outcome);
    for (int i = 0; i < count; ++i) {
      if (waited[i] != 0) {
        begin_episode(block, i);
        forget(first + i);
      }
      observe(block, i, io_.next_obs + row(first + i));
    }
    std::copy_n(io_.next_obs + row(first), count * obs_size_, io_.obs + row(first));
    for (int i = 0; i < count; ++i) {
      if (block.ended[i] != 0 && autoreset_ == Autoreset::kSameStep) {
        // A reset takes a tick of its own, so that all autoreset modes play the same episodes.
        ++block.slots.clock[i];
        begin_episode(block, i);
        observe(block, i, io_.obs + row(first + i));
      }
      ++block.slots.clock[i];
    }
  }

  // Takes note of what the step brought to slots whose episodes are running. Written without
  // branches, and into the caller's arrays at the end, so that the loop vectorizes.
  void account(Block& block, int first, int count, const Outcome<W>& outcome) {
    const std::int32_t limit = time_limit_ > 0 ? time_limit_ : kMaxElapsed + 1;
    bool terminated[W], truncated[W];
    for (int i = 0; i < W; ++i) {
      const std::int32_t elapsed = block.elapsed[i] + (block.elapsed[i] < kMaxElapsed ? 1 : 0);
      const bool done = outcome.terminated[i] != 0, late = !done && elapsed >= limit;
      block.elapsed[i] = elapsed;
      block.episode_return[i] += outcome.reward[i];
      block.ended[i] = done ? kTerminated : late ? kTruncated : 0;
      terminated[i] = done;
      truncated[i] = late;
    }
    std::fill(block.ended + count, block.ended + W, 0);  // who only fills up the block never ends
    std::copy_n(outcome.reward, count, io_.reward + first);
    std::copy_n(terminated, count, io_.terminated + first);
    std::copy_n(truncated, count, io_.truncated + first);
    std::copy_n(block.episode_return, count, io_.episode_return + first);
    std::copy_n(block.elapsed, count, io_.episode_length + first);
  }

  void forget(int n) {
    io_.reward[n] = io_.episode_return[n] = 0.0f;
    io_.terminated[n] = io_.truncated[n] = false;
    io_.episode_length[n] = 0;
  }

  [[nodiscard]] std::size_t size_of_blocks() const { return blocks_.size() * sizeof(Block); }
  [[nodiscard]] std::string signature(int version) const {
    std::string text = std::string("headwise/") + E::kName;
    const auto add = [&text](const auto& number) { text += "/" + std::to_string(number); };
    add(version);
    add(num_envs_);
    add(sizeof(Block));
    add(settings_sum_);
    if (version > kFormerVersion) {
      add(time_limit_);
      add(static_cast<int>(autoreset_));
    }
    return text + "\n";
  }

  Params params_;
  const std::uint64_t settings_sum_ = checksum(text_of(params_.settings()));
  const Autoreset autoreset_;
  std::vector<std::uint32_t> options_;  // of the choice heads
  std::vector<float> lows_, highs_;     // of the range heads
  std::optional<Units> units_;          // the heads as learners see them
  std::vector<float> values_;           // what the slots do in this step, by head
  const float* given_ = nullptr;        // units that this step has still to translate
  bool started_ = false;
  std::vector<Block> blocks_;
  ThreadPool threads_;
};

}  // namespace headwise
