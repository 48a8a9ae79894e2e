// Maximum-entropy values: of the policy that is a softmax of advantages, and of entropies.
#pragma once

#include "ops/sample.h"
#include "ops/values.h"

namespace headwise::ops {

// The softmax of a head's advantages over its temperature, and its best score.
class Softmax {
 public:
  // Reads rows of a network. Options that may not be chosen are masked again after the temperature:
  // a mixture that is flat, or a temperature close to zero, would make too little or too much of
  // their advantages.
  HEADWISE_INLINE void read(const HeadTable& table, const Head& head, const Buffer& y,
                            const Buffer& mask, Wide slope, Wide alpha, int p, int c, int b,
                            int n) {
    log_p.resize(head.options);
    read_options(head, y, mask, p, table.copy_of(head, c), c, b, n, log_p.data());
    best = best_of(log_p.data(), head.options);
    for (Wide& x : log_p) {
      x = select(x < 0.5f * kNever, Wide(kNever), (x - best.number) * slope / alpha);
    }
    log_softmax(log_p.data(), head.options);
  }
  std::vector<Wide> log_p;
  Best best;
};

struct SoftValue {
  Buffer value, y, alpha, mask, in_use, soft, entropy;
  Heads table;
  bool adds_up, plain;

  [[nodiscard]] Sizes check() const {
    const Sizes s{y.members, table->networks(y), y.rows, table->discrete};
    expect(alpha, "alpha", s);
    expect_if_given(mask, "mask", {s.members, s.copies, s.rows, table->options});
    expect_if_given(in_use, "in_use", s);
    expect_all(soft, "soft values", {s.members, s.copies, s.rows, adds_up ? 1 : s.columns});
    expect_all(entropy, "entropy", {s.members, 1, s.rows, s.columns});
    if (value) check_value(value, sizes_of(soft));
    return s;
  }
};

// V plus what options are expected to bring with their entropies, in closed form: the mean of
// advantages and alpha times the entropy is alpha log sum exp(A / alpha).
inline void soft_value(const Buffer& value, const Buffer& y, const Buffer& alpha,
                       const Buffer& mask, const Buffer& in_use, const Buffer& soft,
                       const Buffer& entropy, Heads table, bool adds_up, bool plain) {
  const SoftValue x{value, y, alpha, mask, in_use, soft, entropy, table, adds_up, plain};
  const Sizes s = x.check();
  emit(s.members, s.copies, [x, s](int p, int c) {
    static thread_local Softmax policy;
    each_rows(s.rows, [&](int b, int n) {
      Wide sum(0.0f);
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = x.table->heads[h];
        const Wide alpha = get(x.alpha, p, 0, 0, h, n);
        policy.read(*x.table, head, x.y, x.mask, 1.0f, alpha, p, c, b, n);
        const Wide used = get_or(1.0f, x.in_use, p, c, b, h, n);
        if (c == 0) {
          set(entropy_of(policy.log_p.data(), head.options) * used, x.entropy, p, 0, b, h, n);
        }
        Wide gain = -alpha * best_of(policy.log_p.data(), head.options).number * used;
        if (x.plain) gain += policy.best.number;
        sum += gain;
        if (x.adds_up) continue;
        const int copy = copy_of_value(x.value, s.copies, c, h);
        set(get_or(0.0f, x.value, p, copy, b, 0, n) + gain, x.soft, p, c, b, h, n);
      }
      if (x.adds_up) {
        const int copy = copy_of_value(x.value, s.copies, c, 0);
        set(get_or(0.0f, x.value, p, copy, b, 0, n) + sum, x.soft, p, c, b, 0, n);
      }
    });
  });
}
inline void soft_value_backward(const Buffer& value, const Buffer& y, const Buffer& alpha,
                                const Buffer& mask, const Buffer& in_use, const Buffer& soft,
                                const Buffer& entropy, bool add, Heads table, bool adds_up,
                                bool plain) {
  const SoftValue x{value, y, alpha, mask, in_use, soft, entropy, table, adds_up, plain};
  const Sizes s = x.check();
  emit(s.members, [x, s, add](int p) {
    static thread_local Softmax policy;
    if (!add) clear(x.y, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        value_back(x.value, x.soft, add, p, c, b, n);
        if (x.y.gradients == nullptr) return;
        for (int h = 0; h < s.columns; ++h) {
          const Head& head = x.table->heads[h];
          const Wide alpha = get(x.alpha, p, 0, 0, h, n);
          policy.read(*x.table, head, x.y, x.mask, 1.0f, alpha, p, c, b, n);
          const Wide used = get_or(1.0f, x.in_use, p, c, b, h, n);
          const Wide by = slope(x.soft, p, c, b, x.adds_up ? 0 : h, n), gain = by * used;
          const Wide of_best = x.plain ? by - gain : -gain;
          const Wide by_entropy = c == 0 ? slope(x.entropy, p, 0, b, h, n) * used / alpha : 0.0f;
          const Wide entropy = entropy_of(policy.log_p.data(), head.options);
          for (int k = 0; k < head.options; ++k) {
            const Wide log_p = policy.log_p[k], own = exp(log_p);
            Wide to = own * gain - by_entropy * own * (log_p + entropy);
            to += select(policy.best.option == static_cast<float>(k), of_best, 0.0f);
            to = select(log_p < 0.5f * kNever, 0.0f, to);
            give(to, x.y, p, x.table->copy_of(head, c), b, head.place + k, n, true);
          }
        }
      });
    }
  });
}

// Options drawn from a softmax of each head's advantages, and entropies.
inline void boltzmann(const Buffer& y, const Buffer& slope, const Buffer& alpha,
                      const Buffer& uniform, const Buffer& mask, const Buffer& options,
                      const Buffer& entropy, Heads table) {
  const Sizes s{y.members, table->networks(y), y.rows, table->discrete};
  expect_if_given(slope, "slope", s);
  expect(alpha, "alpha", s);
  expect(uniform, "uniform", {s.members, s.copies, s.rows, uniform.columns});
  if (uniform.columns < s.columns) throw Fault("a uniform number for each head");
  expect_if_given(mask, "mask", {s.members, s.copies, s.rows, table->options});
  expect_all(options, "options", s);
  expect_all(entropy, "entropy", s);
  emit(s.members, s.copies, [=](int p, int c) {
    static thread_local Softmax policy;
    static thread_local Room room;
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        policy.read(*table, head, y, mask, get_or(1.0f, slope, p, c, b, h, n),
                    get(alpha, p, 0, 0, h, n), p, c, b, n);
        const Wide* log_p = policy.log_p.data();
        const Wide number = get(uniform, p, c, b, h, n);
        set(drawn(log_p, number, head.options, room(head.options)), options, p, c, b, h, n);
        set(entropy_of(log_p, head.options), entropy, p, c, b, h, n);
      }
    });
  });
}

// ---- entropies and temperatures ------------------------------------------------------------

// What entropies are worth, added up or each by itself.
inline Sizes check_entropy_bonus(const Buffer& entropy, const Buffer& alpha, const Buffer& weight,
                                 const Buffer& out, bool adds_up) {
  const Sizes s = sizes_of(entropy);
  expect(alpha, "alpha", s);
  expect_if_given(weight, "weight", s);
  expect_all(out, "the bonus", {s.members, s.copies, out.rows, adds_up ? 1 : s.columns});
  // Entropies of one row may be worth as much in every row, by weights of their own.
  if (out.rows != s.rows && s.rows != 1) throw Fault("a bonus for each row");
  return {s.members, s.copies, out.rows, s.columns};
}
inline void entropy_bonus(const Buffer& entropy, const Buffer& alpha, const Buffer& weight,
                          const Buffer& out, bool adds_up) {
  const Sizes s = check_entropy_bonus(entropy, alpha, weight, out, adds_up);
  emit(s.members, s.copies, [=](int p, int c) {
    each_rows(s.rows, [&](int b, int n) {
      Wide sum(0.0f);
      for (int h = 0; h < s.columns; ++h) {
        const Wide own = get(alpha, p, 0, 0, h, n) * get(entropy, p, c, b, h, n);
        const Wide paid = own * get_or(1.0f, weight, p, c, b, h, n);
        sum += paid;
        if (!adds_up) set(paid, out, p, c, b, h, n);
      }
      if (adds_up) set(sum, out, p, c, b, 0, n);
    });
  });
}
inline void entropy_bonus_backward(const Buffer& entropy, const Buffer& alpha, const Buffer& weight,
                                   const Buffer& out, bool add, bool adds_up) {
  const Sizes s = check_entropy_bonus(entropy, alpha, weight, out, adds_up);
  if (entropy.rows != s.rows) throw Fault("entropies of every row have gradients");
  const bool weighs = weight && weight.gradients != nullptr;
  if (weighs && weight.rows != s.rows) throw Fault("weights of every row have gradients");
  emit(s.members, [=](int p) {
    if (weighs && !add) clear(weight, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        for (int h = 0; h < s.columns; ++h) {
          const Wide by = slope(out, p, c, b, adds_up ? 0 : h, n) * get(alpha, p, 0, 0, h, n);
          give(by * get_or(1.0f, weight, p, c, b, h, n), entropy, p, c, b, h, n, add);
          if (weighs) give(by * get(entropy, p, c, b, h, n), weight, p, c, b, h, n, true);
        }
      });
    }
  });
}

// A fraction of the largest entropy that each head can have, given what it may choose.
inline void target_entropy(const Buffer& fraction, const Buffer& mask, const Buffer& out,
                           Heads table) {
  const Sizes s{out.members, 1, out.rows, table->size()};
  expect_all(fraction, "fraction", {s.members, 1, 1, 1});
  expect_if_given(mask, "mask", {s.members, 1, s.rows, table->options});
  expect_all(out, "targets", s);
  emit(s.members, [=](int p) {
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        Wide count(static_cast<float>(head.options));
        if (mask && head.options > 0) {
          count = 0.0f;
          for (int k = 0; k < head.options; ++k) {
            const Mask allowed = get(mask, p, 0, b, head.first + k, n) > 0.0f;
            count += select(allowed, Wide(1.0f), Wide(0.0f));
          }
          count = max(count, 1.0f);  // a head that is not in use may have no option at all
        }
        const Wide found = head.options > 0 ? Wide(one(fraction, p)) * log(count) : Wide(-1.0f);
        set(found, out, p, 0, b, h, n);
      }
    });
  });
}

// How much more entropy there is than there should be, by temperature; the means of both.
inline void entropy_surplus(const Buffer& entropy, const Buffer& target, const Buffer& in_use,
                            const Buffer& surplus, const Buffer& mean, const Buffer& aim,
                            const std::vector<int>& groups) {
  const Sizes s{entropy.members, 1, entropy.rows, entropy.columns};
  expect_all(entropy, "entropy", s);
  expect(target, "target", s);
  expect_if_given(in_use, "in_use", s);
  if (static_cast<int>(groups.size()) != s.columns) throw Fault("a temperature for each head");
  const int count = *std::max_element(groups.begin(), groups.end()) + 1;
  expect_all(surplus, "surplus", {s.members, 1, 1, count});
  for (const Buffer& x : {mean, aim}) expect_all(x, "means", {s.members, 1, 1, s.columns});
  emit(s.members, [=](int p) {
    const float rows = static_cast<float>(s.rows);
    float* to = surplus.at(p);
    std::fill_n(to, count, 0.0f);
    for (int h = 0; h < s.columns; ++h) {
      RowSum own, wanted;
      each_rows(s.rows, [&](int b, int n) {
        own.add(get(entropy, p, 0, b, h, n), n);
        const Wide goal = get(target, p, 0, b, h, n);
        wanted.add(goal * get_or(1.0f, in_use, p, 0, b, h, n), n);
      });
      mean.at(p)[h] = own.total() / rows;
      aim.at(p)[h] = wanted.total() / rows;
      to[groups[h]] += mean.at(p)[h] - aim.at(p)[h];
    }
  });
}

// The temperature of each head, from logarithms.
inline void temperatures(const Buffer& log_alpha, const Buffer& out,
                         const std::vector<int>& groups) {
  expect_all(out, "temperatures", {log_alpha.members, 1, 1, static_cast<int>(groups.size())});
  for (const int group : groups) {
    if (group < 0 || group >= log_alpha.columns) throw Fault("a temperature that there is");
  }
  emit(out.members, [=](int p) {
    for (int h = 0; h < out.columns; ++h) out.at(p)[h] = exp(Wide(log_alpha.at(p)[groups[h]]))[0];
  });
}

}  // namespace headwise::ops
