// The loss of a policy over options and its gradient by the logits, in one pass: what PPO does with
// a minibatch, which would be some seventy operations on small tensors.
//
// Every member has `rows` rows with `heads` choices of at most `options` options each. For a head
// in a row, with p the softmax of its logits and q that of the policy that acted,
//   surrogate = min(r A, clip(r, 1 - clip, 1 + clip) A) with r = p / q of the option taken,
//   entropy = -sum p log p, divergence = sum q log(q / p),
// and the loss of a member is the sum over heads of
//   -sum_rows share (surrogate + entropy_coef entropy) + kl_coef mean_rows divergence.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/exponential.h"
#include "core/isa.h"
#include "core/rng.h"

namespace headwise::options_loss {

// Heads of rows that are worked on at once, and the most options that fit their scratch.
constexpr int kLanes = 16;
constexpr int kMaxOptions = 64;
// The largest log-ratio: beyond it a ratio stops growing, and no gradient flows.
constexpr float kLargest = 20.0f;

struct Batch {
  std::int64_t members, rows, heads, options;
  std::int64_t advantages;  // of a row: one for each head, or one for all
  const float* logits;      // (members, rows, heads, options)
  const float* taken;       // (members, rows, heads): numbers of options
  const float* log_prob;    // (members, rows, heads): of those, when the policy acted
  const float* advantage;   // (members, rows, advantages)
  const float* share;       // (members, rows): what a row counts
  const float* log_probs;   // like the logits, of the policy that acted; null without divergence
  const float *clip, *entropy_coef, *kl_coef;  // (members)
};

struct Found {
  float* log_probs;                                // like the logits
  float *log_prob, *ratio;                         // (members, rows, heads)
  float *loss, *surrogate, *entropy, *divergence;  // (members); summed over heads
  float* to_logits;                                // the gradient of the loss
};

}  // namespace headwise::options_loss

#define HEADWISE_KERNEL "core/options_loss_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

inline void options_loss_all(const options_loss::Batch& batch,
                             const options_loss::Found& found) noexcept {
  HEADWISE_DISPATCH(options_loss, all, batch, found);
}

}  // namespace headwise
