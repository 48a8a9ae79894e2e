// Monotonic mixing of advantages: Q = V + f(A_1 ... A_H), with weights of its own for every row.
// Here a row's hidden units are in the lanes: they lie side by side.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

// The size of a weight, and a number with the sign of it; zero has none.
HEADWISE_INLINE Wide with_sign(Wide weight, Wide x) {
  return select(weight > 0.0f, x, select(weight < 0.0f, -x, x * weight));
}

// Of |W1|, head by head, and |W2|: hidden units of a row.
struct Mixer {
  Buffer advantage, weights;
  int heads, units;

  Mixer(const Buffer& advantage_, const Buffer& weights_)
      : advantage(advantage_),
        weights(weights_),
        heads(advantage.columns),
        units(weights.columns / (heads + 1)) {
    const Sizes s = sizes_of(advantage);
    expect_all(weights, "weights", {s.members, s.copies, s.rows, (heads + 1) * std::max(units, 1)});
  }
  // The unit e and the next ones before their activation.
  [[nodiscard]] HEADWISE_INLINE Wide inner(const float* a, const float* w, int e) const {
    Wide sum(0.0f);
    for (int h = 0; h < heads; ++h) sum = fma(abs(at(w, h, e)), a[h], sum);
    return sum;
  }
  // Weights of a head, or W2 after the last one; zeros beyond them.
  [[nodiscard]] HEADWISE_INLINE Wide at(const float* w, int h, int e) const {
    return load(w + h * units + e, units - e);
  }
};

// V + ELU(A |W1|) |W2|.
inline void mix(const Buffer& value, const Buffer& advantage, const Buffer& weights,
                const Buffer& out) {
  const Mixer x(advantage, weights);
  const Sizes s{advantage.members, advantage.copies, advantage.rows, 1};
  if (value) expect_all(value, "V", s);
  expect_all(out, "values", s);
  emit(s.members, s.copies, [=](int p, int c) {
    for (int b = 0; b < s.rows; ++b) {
      const float *a = advantage.row(p, c, b), *w = weights.row(p, c, b);
      Wide mixed(0.0f);
      for (int e = 0; e < x.units; e += kWide) {
        const Wide inner = x.inner(a, w, e);
        mixed += select(inner > 0.0f, inner, expm1(inner)) * abs(x.at(w, x.heads, e));
      }
      *out.row(p, c, b) = (value ? *value.row(p, c, b) : 0.0f) + sum(mixed);
    }
  });
}

inline void mix_backward(const Buffer& value, const Buffer& advantage, const Buffer& weights,
                         const Buffer& out, bool add) {
  const Mixer x(advantage, weights);
  const Sizes s{advantage.members, advantage.copies, advantage.rows, 1};
  if (value) expect_all(value, "V", s);
  expect_all(out, "values", s);
  if (out.gradients == nullptr) throw Fault("values without a gradient");
  emit(s.members, s.copies, [=](int p, int c) {
    static thread_local Room room;
    Wide* to_advantage = room(x.heads);
    const auto give_to = [add](float* to, Wide y, int n) {
      store(to, add ? load(to, n) + y : y, n);
    };
    for (int b = 0; b < s.rows; ++b) {
      const float *a = advantage.row(p, c, b), *w = weights.row(p, c, b);
      const float by = *out.gradient_row(p, c, b);
      if (value && value.gradients != nullptr) give_to(value.gradient_row(p, c, b), by, 1);
      std::fill_n(to_advantage, x.heads, Wide(0.0f));
      for (int e = 0; e < x.units; e += kWide) {
        const Wide inner = x.inner(a, w, e), second = x.at(w, x.heads, e);
        const Wide bent = expm1(min(inner, 0.0f));
        const Wide to_inner = Wide(by) * abs(second) * (bent + Wide(1.0f));
        const Wide to_second = Wide(by) * select(inner > 0.0f, inner, bent);
        float* to = weights.gradients == nullptr ? nullptr : weights.gradient_row(p, c, b) + e;
        const auto give_weight = [&](int h, Wide y) {
          if (to != nullptr) give_to(to + h * x.units, with_sign(x.at(w, h, e), y), x.units - e);
        };
        give_weight(x.heads, to_second);
        for (int h = 0; h < x.heads; ++h) {
          to_advantage[h] = fma(to_inner, abs(x.at(w, h, e)), to_advantage[h]);
          give_weight(h, to_inner * Wide(a[h]));
        }
      }
      if (advantage.gradients == nullptr) continue;
      for (int h = 0; h < x.heads; ++h) {
        give_to(advantage.gradient_row(p, c, b) + h, sum(to_advantage[h]), 1);
      }
    }
  });
}

// How much each advantage counts where it is: the mixture's derivatives.
inline void mix_gradient(const Buffer& advantage, const Buffer& weights, const Buffer& out) {
  const Mixer x(advantage, weights);
  expect_all(out, "derivatives", sizes_of(advantage));
  emit(out.members, out.copies, [=](int p, int c) {
    static thread_local Room room;
    Wide* slopes = room(x.heads);
    for (int b = 0; b < out.rows; ++b) {
      const float *a = advantage.row(p, c, b), *w = weights.row(p, c, b);
      std::fill_n(slopes, x.heads, Wide(0.0f));
      for (int e = 0; e < x.units; e += kWide) {
        const Wide outer = abs(x.at(w, x.heads, e)) * exp(min(x.inner(a, w, e), 0.0f));
        for (int h = 0; h < x.heads; ++h) slopes[h] = fma(outer, abs(x.at(w, h, e)), slopes[h]);
      }
      for (int h = 0; h < x.heads; ++h) out.row(p, c, b)[h] = sum(slopes[h]);
    }
  });
}

}  // namespace headwise::ops
