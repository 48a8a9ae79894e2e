// The heads of an action, and where a network's output has the numbers of each.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

// The logit of an option that may not be chosen: its probability is exactly zero.
constexpr float kNever = -1e30f;

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
    for (const std::vector<int>* list : {&parents, &copies, &places, const_cast<const std::vector<int>*>(&order)}) {
      if (list->size() != count) throw Fault("a number for each head");
    }
    if (lows.size() != count || highs.size() != count) throw Fault("an interval for each head");
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
};

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

// Fits `columns` numbers of each of `copies`, or throws what does not.
inline void expect(const Buffer& x, const char* name, int copies, int rows, int columns) {
  const bool fits = (x.copies == copies || x.copies == 1) && (x.rows == rows || x.rows == 1) &&
                    x.columns == columns;
  if (!fits) {
    throw Fault(std::string(name) + " is " + std::to_string(x.copies) + " copies, " +
                std::to_string(x.rows) + " rows, " + std::to_string(x.columns) +
                " columns; expected " + std::to_string(copies) + ", " + std::to_string(rows) +
                ", " + std::to_string(columns));
  }
}

}  // namespace headwise::ops
