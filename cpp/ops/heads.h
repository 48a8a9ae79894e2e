// The heads of an action, and where a network's output has the numbers of each.
#pragma once

#include <limits>

#include "ops/program.h"

namespace headwise::ops {

// The logit of an option that may not be chosen: its probability is exactly zero.
constexpr float kNever = -1e30f;
constexpr int kMostOptions = 1 << 24;  // beyond it float32 does not count on

struct Head {
  int options;      // of a discrete head; 0 for a continuous one
  int parent;       // the head that it depends on; -1: it is always in use
  float low, high;  // in use where the parent is and its value is in [low, high)
  int copy, place;  // where its numbers are: the copy within a stack, and the first column
  int first;        // its first option among all, or its number among the continuous heads
};

// Discrete heads come first. See headwise/ops/heads.py.
struct HeadTable {
  std::vector<Head> heads;
  std::vector<int> order;  // heads, each after the one that it depends on
  int discrete = 0, options = 0, stack = 1;
  bool conditional = false, clipped = false, state_std = false;
  float low = 0.0f, half = 0.0f;  // a log standard deviation is low + half * (tanh(free) + 1)

  HeadTable(const std::vector<int>& options_, std::vector<int> order_,
            const std::vector<int>& parents, const std::vector<float>& lows,
            const std::vector<float>& highs, const std::vector<int>& copies,
            const std::vector<int>& places, int stack_, bool clipped_, bool state_std_,
            float log_low, float log_high)
      : order(std::move(order_)),
        stack(stack_),
        clipped(clipped_),
        state_std(state_std_),
        low(log_low),
        half(0.5f * (log_high - log_low)) {
    const std::size_t count = options_.size();
    const bool fits = order.size() == count && parents.size() == count && lows.size() == count &&
                      highs.size() == count && copies.size() == count && places.size() == count;
    if (!fits) throw Fault("a number for each head");
    if (stack < 1) throw Fault("heads lie in one copy at least");
    std::vector<bool> met(count, false);
    for (const int h : order) {
      if (h < 0 || h >= static_cast<int>(count) || met[h]) throw Fault("the order names each head");
      met[h] = true;
      if (parents[h] >= 0 && (parents[h] >= static_cast<int>(count) || !met[parents[h]])) {
        throw Fault("a head comes after the one that it depends on");
      }
    }
    for (std::size_t h = 0; h < count; ++h) {
      const bool sane = options_[h] >= 0 && options_[h] <= kMostOptions && copies[h] >= 0 &&
                        places[h] >= 0 && lows[h] <= highs[h];
      if (!sane) throw Fault("a head has numbers that none can have");
      if (h > 0 && options_[h] > 0 && options_[h - 1] == 0)
        throw Fault("discrete heads come first");
    }
    for (std::size_t h = 0; h < count; ++h) {
      const int n = options_[h];
      const int first = n > 0 ? options : static_cast<int>(h) - discrete;
      heads.push_back({n, parents[h], lows[h], highs[h], copies[h], places[h], first});
      conditional = conditional || parents[h] >= 0;
      options += n;
      discrete += n > 0 ? 1 : 0;
    }
  }
  [[nodiscard]] int size() const { return static_cast<int>(heads.size()); }
  [[nodiscard]] int continuous() const { return size() - discrete; }
  // The copy that has a head of network c.
  [[nodiscard]] int copy_of(const Head& head, int c) const { return c * stack + head.copy; }
  // How many networks there are in outputs, which have to be wide enough for all heads.
  [[nodiscard]] int networks(const Buffer& y) const {
    if (!y || y.copies % stack != 0) throw Fault("outputs of so many copies as heads have");
    for (const Head& head : heads) {
      const int width = head.options > 0 ? head.options : state_std ? 2 : 1;
      if (head.copy >= stack || width > y.columns - head.place) {
        throw Fault("a head's numbers are beyond the outputs: column " +
                    std::to_string(std::int64_t{head.place} + width) + " of " +
                    std::to_string(y.columns) + ", copy " + std::to_string(head.copy) + " of " +
                    std::to_string(stack));
      }
    }
    return y.copies / stack;
  }
};
using Heads = std::shared_ptr<HeadTable>;  // what is recorded keeps it alive

// Columns of an action as inputs: option `value` of a head, or its number where value is -1.
struct Embedding {
  std::vector<int> heads, values;
  std::vector<float> scales, shifts;
  HeadTable table;
};

// Queries of a batch: its row, which head takes which option, and where its answer belongs.
struct Queries {
  std::vector<int> rows, heads, options, columns;
  float stands_for;
};

// ---- discrete heads, sixteen rows at a time ------------------------------------------------

// The numbers of a head's options, one option after another; kNever for what a mask forbids.
HEADWISE_INLINE void read_options(const Head& head, const Buffer& y, const Buffer& mask, int p,
                                  int copy, int c, int b, int n, Wide* to) {
  for (int k = 0; k < head.options; ++k) {
    to[k] = get(y, p, copy, b, head.place + k, n);
    if (mask) to[k] = select(get(mask, p, c, b, head.first + k, n) > 0.0f, to[k], kNever);
  }
}
// In place. If a number is NaN all become NaN.
HEADWISE_INLINE void log_softmax(Wide* x, int options) {
  Wide top = x[0], total(0.0f);
  for (int k = 1; k < options; ++k) top = select(x[k] > top, x[k], top);
  for (int k = 0; k < options; ++k) total += exp(x[k] - top);
  const Wide less = log(total);
  for (int k = 0; k < options; ++k) x[k] = (x[k] - top) - less;
}
// From the gradient of log-probabilities to that of what they were made of, in place.
HEADWISE_INLINE void log_softmax_back(const Wide* log_p, Wide* slope, int options) {
  Wide total(0.0f);
  for (int k = 0; k < options; ++k) total += slope[k];
  for (int k = 0; k < options; ++k) {
    slope[k] = select(log_p[k] < 0.5f * kNever, 0.0f, slope[k] - exp(log_p[k]) * total);
  }
}
HEADWISE_INLINE Wide entropy_of(const Wide* log_p, int options) {
  Wide total(0.0f);
  for (int k = 0; k < options; ++k) total -= exp(log_p[k]) * log_p[k];
  return total;
}
// The first best option, and its number.
struct Best {
  Wide option, number;
};
HEADWISE_INLINE Best best_of(const Wide* x, int options) {
  Best best{0.0f, x[0]};
  for (int k = 1; k < options; ++k) {
    const Mask better = x[k] > best.number;
    best = {select(better, static_cast<float>(k), best.option), select(better, x[k], best.number)};
  }
  return best;
}
// The number of an option; NaN where there is no such option.
HEADWISE_INLINE Wide chosen(const Wide* x, Wide option, int options) {
  Wide found(std::numeric_limits<float>::quiet_NaN());
  for (int k = 0; k < options; ++k) found = select(option == static_cast<float>(k), x[k], found);
  return found;
}
// The first option whose cumulative probability exceeds a uniform number; `room` is overwritten.
HEADWISE_INLINE Wide drawn(const Wide* log_p, Wide uniform, int options, Wide* room) {
  Wide total(0.0f), option(0.0f);
  for (int k = 0; k < options; ++k) room[k] = total += exp(log_p[k]);
  // Rounding may leave the total a little below 1; a share of the total is never beyond it.
  for (int k = 0; k + 1 < options; ++k) {
    option += select(room[k] <= uniform * total, Wide(1.0f), Wide(0.0f));
  }
  return option;
}

// ---- which heads are in use ----------------------------------------------------------------

// The value of an action as conditions and the environment have it: options as they are.
HEADWISE_INLINE Wide unit_of(const HeadTable& table, int h, Wide raw) {
  if (h < table.discrete) return raw;
  return table.clipped ? min(max(raw, -1.0f), 1.0f) : tanh(raw);
}
// Zeros and ones for each head of an action in unit form.
HEADWISE_INLINE void heads_in_use(const HeadTable& table, const Wide* unit, Wide* use) {
  for (const int h : table.order) {
    const Head& head = table.heads[h];
    use[h] = 1.0f;
    if (head.parent >= 0) {
      const Wide x = unit[head.parent];
      use[h] = select((x >= head.low) & (x < head.high), use[head.parent], 0.0f);
    }
  }
}
// How likely a head's value is to lie in [low, high), as a condition on it asks; the options.
struct Span {
  int first, last;
};
inline Span span_of(const HeadTable& table, const Head& child) {
  const int options = table.heads[child.parent].options;
  const auto edge = [options](float x) {
    return static_cast<int>(std::ceil(std::min(std::max(x, 0.0f), static_cast<float>(options))));
  };
  return {edge(child.low), edge(child.high)};
}
}  // namespace headwise::ops
