// Actions drawn, judged and relaxed, in one pass each: what SAC does with an actor's outputs, which
// would be some twenty operations on small tensors, and as many on the way back.
//
// Rows are worked on by themselves. A row of outputs has mean and free spread of every Range, then
// the logits of every Choice; what else options have is padded to `most` for each head.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/erfinv.h"
#include "core/exponential.h"
#include "core/isa.h"
#include "core/rng.h"
#include "core/tanh.h"

namespace headwise::options {

// Rows that are worked on at once, and the most options of a head that fit their scratch.
constexpr int kLanes = 16;
constexpr int kMaxOptions = 64;
// The log-probability of an option that does not exist, as the learners have it.
constexpr float kNever = -1e30f;

// Where the options of each Choice head begin and end among all, (count + 1).
struct Heads {
  const std::int32_t* bounds;
  std::int64_t count, most;
};

// Rows of numbers, equally far apart.
struct Rows {
  const float* at;
  std::int64_t apart;
};

// An actor over `all` heads: which of them are Choices and which Ranges, and how wide those may be.
struct Actor {
  Heads choices;
  std::int64_t all, num_ranges;
  const std::int64_t *choice_places, *range_places;
  float low, half;  // of log standard deviations: the least, and half of what is above it
};

struct Drawn {
  float *unit, *entropy;  // (rows, all): for a Range minus the log-density
  float* log_probs;       // (rows, choices, most)
  float* spread;          // (rows, ranges): how far from the mean
};

// What is known of a draw on the way back; gradients that nobody asked for are null.
struct Judged {
  const float *unit, *entropy, *log_probs, *spread;
  const float *by_unit, *by_entropy, *by_log_probs;
};

// How an action of `heads` numbers is shown to a network, after `obs` numbers of the observation.
// A number of it is one where a head's value is `match`, else the value times `scale` plus `shift`.
struct Embedding {
  std::int64_t obs, heads, size, ranges;
  const std::int64_t* column_of;          // (heads): where a head's numbers begin
  const std::int64_t *choices, *numbers;  // which heads are Choices and Ranges
  const float *match, *scale, *shift;     // (size)
};

}  // namespace headwise::options

#define HEADWISE_KERNEL "core/draw_options_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// Actions drawn by uniform numbers, Choices first: the first option whose cumulative probability
// exceeds the number's share of the total, and tanh of a Gaussian.
inline void draw_heads(std::int64_t rows, const options::Actor& actor, const options::Rows& outputs,
                       const options::Rows& uniform, const options::Drawn& drawn) noexcept {
  HEADWISE_DISPATCH(options, draw, rows, actor, outputs, uniform, drawn);
}
// The gradient by the outputs.
inline void draw_heads_back(std::int64_t rows, const options::Actor& actor,
                            const options::Rows& outputs, const options::Judged& judged,
                            float* to_outputs) noexcept {
  HEADWISE_DISPATCH(options, draw_back, rows, actor, outputs, judged, to_outputs);
}

// Observations beside embedded actions (rows, obs + size); `owner` (size) is the head that a number
// of the embedding shows.
inline void embed_actions(std::int64_t rows, const options::Embedding& embedding,
                          const std::int64_t* owner, const options::Rows& obs,
                          const options::Rows& action, float* out) noexcept {
  const float *match = embedding.match, *scale = embedding.scale, *shift = embedding.shift;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float *seen = obs.at + row * obs.apart, *mine = action.at + row * action.apart;
    out = std::copy(seen, seen + embedding.obs, out);
    for (std::int64_t z = 0; z < embedding.size; ++z) {
      const float value = mine[owner[z]];
      const float hit = value == match[z] ? 1.0f : 0.0f, number = value * scale[z] + shift[z];
      *out++ = match[z] >= 0.0f ? hit : number;
    }
  }
}

// Observations beside embedded actions whose options are the largest of a Gumbel-softmax, which is
// kept in `soft` (rows, count, most); of the actions only the numbers are taken.
inline void relax_options(std::int64_t rows, const options::Heads& heads,
                          const options::Embedding& embedding, const float* log_probs,
                          const options::Rows& noise, float softness, const options::Rows& obs,
                          const options::Rows& action, float* soft, float* out) noexcept {
  HEADWISE_DISPATCH(options, relax, rows, heads, embedding, log_probs, noise, softness, obs, action,
                    soft, out);
}
// Gradients of both critics (members, 2, rows_each, obs + size) as one by the log-probabilities,
// passed on as if options were the Gumbel-softmax, and one by the actions' numbers (or null).
inline void relax_options_back(std::int64_t rows, std::int64_t rows_each,
                               const options::Heads& heads, const options::Embedding& embedding,
                               const float* grad, const float* soft, float softness,
                               float* to_log_probs, float* to_action) noexcept {
  HEADWISE_DISPATCH(options, relax_back, rows, rows_each, heads, embedding, grad, soft, softness,
                    to_log_probs, to_action);
}

}  // namespace headwise
