// Values that branch into the options of Choice heads, in one pass each: what DQN and SAC-BDQ do
// with advantages, of which a row has those of all heads one after the other.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/draw_options.h"

namespace headwise::branches {

using options::Heads;
using options::kLanes;
using options::kMaxOptions;

// Twin critics of `members` with `rows` rows each.
struct Critics {
  std::int64_t members, rows, all_heads;
  const std::int64_t* choices;  // (heads): their places among all heads
  const float* advantage;       // (members, 2, rows, options of all heads)
  const float* temperature;     // (members, all_heads)
};

}  // namespace headwise::branches

#define HEADWISE_KERNEL "core/branches_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// The soft value of each row (members, rows) by the less hopeful critic, V + sum of t log sum exp(A
// / t) with the best A of a head at zero; which critic that is; and the entropies (members, rows,
// heads) of the first critic's softmax(A / t).
inline void soft_branches(const options::Heads& heads, const branches::Critics& critics,
                          const float* value, float* total, float* entropy,
                          std::int32_t* which) noexcept {
  HEADWISE_DISPATCH(branches, soft, heads, critics, value, total, entropy, which);
}
// The gradients by V and by the advantages; of equally good options the first is the best.
inline void soft_branches_back(const options::Heads& heads, const branches::Critics& critics,
                               const float* grad, const std::int32_t* which, float* to_value,
                               float* to_advantage) noexcept {
  HEADWISE_DISPATCH(branches, soft_back, heads, critics, grad, which, to_value, to_advantage);
}

// The lesser of twin values (members, 2, rows), plus temperatures (members, heads) times entropies
// (members, rows, heads) if there are any; `which` is 1 where that is the second twin.
inline void lesser_worth(std::int64_t members, std::int64_t rows, std::int64_t heads,
                         const float* values, const float* entropy, const float* temperature,
                         float* out, float* which) noexcept {
  for (std::int64_t member = 0; member < members; ++member) {
    const float *first = values + 2 * member * rows, *second = first + rows;
    const float* t = temperature + member * heads;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t at = member * rows + i;
      // What is not a number is the lesser.
      const bool is_first = (first[i] <= second[i]) | (first[i] != first[i]);
      float more = 0.0f;
      for (std::int64_t head = 0; head < heads; ++head)
        more += t[head] * entropy[at * heads + head];
      out[at] = (is_first ? first[i] : second[i]) + more;
      which[at] = is_first ? 0.0f : 1.0f;
    }
  }
}
// The gradients by both twins and by entropies.
inline void lesser_worth_back(std::int64_t members, std::int64_t rows, std::int64_t heads,
                              const float* grad, const float* temperature, const float* which,
                              float* to_values, float* to_entropy) noexcept {
  for (std::int64_t member = 0; member < members; ++member) {
    float *first = to_values + 2 * member * rows, *second = first + rows;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t at = member * rows + i;
      first[i] = which[at] > 0.0f ? 0.0f : grad[at];
      second[i] = which[at] > 0.0f ? grad[at] : 0.0f;
      for (std::int64_t head = 0; head < heads; ++head) {
        to_entropy[at * heads + head] = grad[at] * temperature[member * heads + head];
      }
    }
  }
}

// V plus the advantages of options taken (rows, heads) minus their head's best: of each head, or
// of all together if they are `summed`. `best` is which options those are; of equally good ones the
// first. False if an option taken does not exist.
[[nodiscard]] inline bool centre_options(std::int64_t rows, const options::Heads& heads,
                                         const float* value, const float* advantage,
                                         const float* taken, bool summed, float* out,
                                         std::int32_t* best) noexcept {
  const std::int64_t width = heads.bounds[heads.count];
  for (std::int64_t row = 0; row < rows; ++row) {
    const float base = value != nullptr ? value[row] : 0.0f;
    float sum = 0.0f;
    for (std::int64_t head = 0; head < heads.count; ++head) {
      const std::int64_t first = heads.bounds[head], at = row * heads.count + head;
      const auto options = static_cast<std::int32_t>(heads.bounds[head + 1] - first);
      const float* mine = advantage + row * width + first;
      if (!(taken[at] >= 0.0f && taken[at] < static_cast<float>(options))) return false;
      float high = mine[0];
      std::int32_t place = 0;
      for (std::int32_t k = 1; k < options; ++k) {
        // What is not a number is the largest, so that its member is found out.
        const bool more = (mine[k] > high) | (mine[k] != mine[k]);
        high = more ? mine[k] : high;
        place = more ? k : place;
      }
      const float centred = mine[static_cast<std::int32_t>(taken[at])] - high;
      best[at] = place;
      sum += centred;
      if (!summed) out[at] = base + centred;
    }
    if (summed) out[row] = base + sum;
  }
  return true;
}
// The gradient by all advantages. False if an option does not exist.
[[nodiscard]] inline bool centre_options_back(std::int64_t rows, const options::Heads& heads,
                                              const float* grad, bool summed, const float* taken,
                                              const std::int32_t* best,
                                              float* to_advantage) noexcept {
  const std::int64_t width = heads.bounds[heads.count];
  std::fill(to_advantage, to_advantage + rows * width, 0.0f);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t head = 0; head < heads.count; ++head) {
      const std::int64_t at = row * heads.count + head;
      const float slope = grad[summed ? row : at];
      float* mine = to_advantage + row * width + heads.bounds[head];
      const std::int32_t options = heads.bounds[head + 1] - heads.bounds[head];
      if (!(taken[at] >= 0.0f && taken[at] < static_cast<float>(options))) return false;
      if (best[at] < 0 || best[at] >= options) return false;
      mine[static_cast<std::int32_t>(taken[at])] += slope;
      mine[best[at]] -= slope;
    }
  }
  return true;
}

}  // namespace headwise
