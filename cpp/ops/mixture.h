// Monotonic mixing of advantages: Q = V + f(A_1 ... A_H), with weights of its own for every row.
// Here a row's hidden units are in the lanes: they lie side by side.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

// The size of a weight, and a number with the sign of it; zero has none.
HEADWISE_INLINE Wide with_sign(Wide weight, Wide x) {
  return select(weight > 0.0f, x, select(weight < 0.0f, -x, x * weight));
}

// Of |W1|, head by head, and |W2|: hidden units of a row. They may bend by a ReLU in place of an
// ELU, and weights be softplus(W) in place of |W|.
template <class Relu, class Soft>
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
    for (int h = 0; h < heads; ++h) sum = fma(size(w, h, e), a[h], sum);
    return sum;
  }
  // Weights of a head, or W2 after the last one; zeros beyond them.
  [[nodiscard]] HEADWISE_INLINE Wide at(const float* w, int h, int e) const {
    return load(w + h * units + e, units - e);
  }
  // The same as they count, and what comes back to them.
  [[nodiscard]] HEADWISE_INLINE Wide size(const float* w, int h, int e) const {
    const Wide x = at(w, h, e);
    if constexpr (!Soft::value) return abs(x);
    return select(iota() < Wide(static_cast<float>(units - e)), softplus(x), Wide(0.0f));
  }
  [[nodiscard]] HEADWISE_INLINE Wide back(const float* w, int h, int e, Wide y) const {
    const Wide x = at(w, h, e);
    if constexpr (!Soft::value) return with_sign(x, y);
    return y / (Wide(1.0f) + exp(-x));
  }
  // A hidden unit, given what is below zero of an ELU; and its slope.
  [[nodiscard]] static HEADWISE_INLINE Wide hidden(Wide inner, Wide below) {
    return Relu::value ? max(inner, 0.0f) : select(inner > 0.0f, inner, below);
  }
  [[nodiscard]] static HEADWISE_INLINE Wide slope(Wide inner, Wide of_elu) {
    return Relu::value ? select(inner < 0.0f, Wide(0.0f), Wide(1.0f)) : of_elu;
  }
};
// Does something with the mixer of that kind.
template <class F>
void with_mixer(const Buffer& advantage, const Buffer& weights, bool relu, bool soft, F f) {
  const auto with = [&](auto r, auto s) { f(Mixer<decltype(r), decltype(s)>(advantage, weights)); };
  const std::true_type yes;
  const std::false_type no;
  if (relu) {
    soft ? with(yes, yes) : with(yes, no);
  } else {
    soft ? with(no, yes) : with(no, no);
  }
}

// V + ELU(A |W1|) |W2|.
inline void mix(const Buffer& value, const Buffer& advantage, const Buffer& weights,
                const Buffer& out, bool relu, bool soft) {
  const Sizes s{advantage.members, advantage.copies, advantage.rows, 1};
  if (value) expect_all(value, "V", s);
  expect_all(out, "values", s);
  with_mixer(advantage, weights, relu, soft, [&](auto x) {
    emit(s.members, s.copies, [=](int p, int c) {
      for (int b = 0; b < s.rows; ++b) {
        const float *a = advantage.row(p, c, b), *w = weights.row(p, c, b);
        Wide mixed(0.0f);
        for (int e = 0; e < x.units; e += kWide) {
          const Wide inner = x.inner(a, w, e);
          mixed += x.hidden(inner, expm1(inner)) * x.size(w, x.heads, e);
        }
        *out.row(p, c, b) = (value ? *value.row(p, c, b) : 0.0f) + sum(mixed);
      }
    });
  });
}

inline void mix_backward(const Buffer& value, const Buffer& advantage, const Buffer& weights,
                         const Buffer& out, bool add, bool relu, bool soft) {
  const Sizes s{advantage.members, advantage.copies, advantage.rows, 1};
  if (value) expect_all(value, "V", s);
  expect_all(out, "values", s);
  if (out.gradients == nullptr) throw Fault("values without a gradient");
  with_mixer(advantage, weights, relu, soft, [&](auto x) {
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
          const Wide inner = x.inner(a, w, e), second = x.size(w, x.heads, e);
          const Wide bent = expm1(min(inner, 0.0f));
          const Wide to_inner = Wide(by) * second * x.slope(inner, bent + Wide(1.0f));
          const Wide to_second = Wide(by) * x.hidden(inner, bent);
          float* to = weights.gradients == nullptr ? nullptr : weights.gradient_row(p, c, b) + e;
          const auto give_weight = [&](int h, Wide y) {
            if (to != nullptr) give_to(to + h * x.units, x.back(w, h, e, y), x.units - e);
          };
          give_weight(x.heads, to_second);
          for (int h = 0; h < x.heads; ++h) {
            to_advantage[h] = fma(to_inner, x.size(w, h, e), to_advantage[h]);
            give_weight(h, to_inner * Wide(a[h]));
          }
        }
        if (advantage.gradients == nullptr) continue;
        for (int h = 0; h < x.heads; ++h) {
          give_to(advantage.gradient_row(p, c, b) + h, sum(to_advantage[h]), 1);
        }
      }
    });
  });
}

// How much each advantage counts where it is: the mixture's derivatives.
inline void mix_gradient(const Buffer& advantage, const Buffer& weights, const Buffer& out,
                         bool relu, bool soft) {
  expect_all(out, "derivatives", sizes_of(advantage));
  with_mixer(advantage, weights, relu, soft, [&](auto x) {
    emit(out.members, out.copies, [=](int p, int c) {
      static thread_local Room room;
      Wide* slopes = room(x.heads);
      for (int b = 0; b < out.rows; ++b) {
        const float *a = advantage.row(p, c, b), *w = weights.row(p, c, b);
        std::fill_n(slopes, x.heads, Wide(0.0f));
        for (int e = 0; e < x.units; e += kWide) {
          const Wide inner = x.inner(a, w, e);
          const Wide outer = x.size(w, x.heads, e) * x.slope(inner, exp(min(inner, 0.0f)));
          for (int h = 0; h < x.heads; ++h) slopes[h] = fma(outer, x.size(w, h, e), slopes[h]);
        }
        for (int h = 0; h < x.heads; ++h) out.row(p, c, b)[h] = sum(slopes[h]);
      }
    });
  });
}

}  // namespace headwise::ops
