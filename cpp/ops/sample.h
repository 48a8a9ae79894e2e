// Drawing actions from the heads' distributions, and what those say of given actions.
#pragma once

#include "ops/heads.h"

namespace headwise::ops {

constexpr float kLogRootTau = 0.918938533f;  // log sqrt(2 pi)

// log(1 - tanh(raw)^2), without losing digits far out.
HEADWISE_INLINE Wide log_tanh_slope(Wide raw) {
  return Wide(2.0f) * (Wide(0.693147181f) - raw - softplus(Wide(-2.0f) * raw));
}

struct Gaussian {
  Wide mean, log_std;
};

// The distributions of all heads in up to sixteen rows, and room for gradients of what they are
// made of: of the options' log-probabilities, of means and of logarithms of standard deviations.
class Policy {
 public:
  // What is wrong with the inputs; how many networks there are.
  static int check(const HeadTable& table, const Buffer& y, const Buffer& free,
                   const Buffer& mask) {
    const int networks = table.networks(y);
    expect_if_given(mask, "mask", {y.members, networks, y.rows, table.options});
    if (table.continuous() > 0 && !table.state_std) {
      expect_all(free, "standard deviations", {y.members, 1, 1, table.continuous()});
    }
    return networks;
  }
  // That of this thread, for a table.
  static Policy& of(const HeadTable& table) {
    static thread_local Policy policy;
    policy.table_ = &table;
    policy.log_p_.resize(table.options);
    policy.option_slopes_.resize(table.options);
    for (auto* normals : {&policy.normals_, &policy.normal_slopes_}) {
      normals->resize(table.continuous());
    }
    policy.bent_.resize(table.continuous());
    policy.free_.assign(table.continuous(), RowSum());
    return policy;
  }

  // Rows of a network.
  void read(const Buffer& y, const Buffer& free, const Buffer& mask, int p, int c, int b, int n) {
    for (const Head& head : table_->heads) {
      const int copy = table_->copy_of(head, c);
      if (head.options > 0) {
        read_options(head, y, mask, p, copy, c, b, n, log_p(head));
        log_softmax(log_p(head), head.options);
      } else {
        const Wide second = table_->state_std ? get(y, p, copy, b, head.place + 1, n)
                                              : get(free, p, 0, 0, head.first, n);
        const Wide bent = bent_[head.first] = tanh(second);
        normal(head) = {get(y, p, copy, b, head.place, n),
                        fma(bent, table_->half, table_->low + table_->half)};
      }
    }
  }
  [[nodiscard]] Wide* log_p(const Head& head) { return log_p_.data() + head.first; }
  [[nodiscard]] Wide* option_slopes(const Head& head) { return option_slopes_.data() + head.first; }
  [[nodiscard]] Gaussian& normal(const Head& head) { return normals_[head.first]; }
  [[nodiscard]] Gaussian& normal_slopes(const Head& head) { return normal_slopes_[head.first]; }

  HEADWISE_INLINE Wide sample(const Head& head, Wide uniform) {
    if (head.options > 0) return drawn(log_p(head), uniform, head.options, option_slopes(head));
    return fma(exp(normal(head).log_std), normal_of(uniform), normal(head).mean);
  }
  HEADWISE_INLINE Wide mode(const Head& head) {
    return head.options > 0 ? best_of(log_p(head), head.options).option : normal(head).mean;
  }
  HEADWISE_INLINE Wide log_prob(const Head& head, Wide raw) {
    if (head.options > 0) return chosen(log_p(head), raw, head.options);
    const Gaussian& own = normal(head);
    const Wide z = (raw - own.mean) * exp(-own.log_std);
    const Wide density = Wide(-0.5f) * z * z - own.log_std - Wide(kLogRootTau);
    return table_->clipped ? density : density - log_tanh_slope(raw);
  }
  HEADWISE_INLINE Wide entropy(const Head& head) {
    if (head.options > 0) return entropy_of(log_p(head), head.options);
    return normal(head).log_std + Wide(0.5f + kLogRootTau);
  }

  // How likely each head is to be in use; conditions are on discrete heads.
  void activity(Wide* likely) const { activity(*table_, log_p_.data(), likely); }
  static void activity(const HeadTable& table, const Wide* log_p, Wide* likely) {
    for (const int h : table.order) {
      const Head& head = table.heads[h];
      likely[h] = 1.0f;
      if (head.parent >= 0) likely[h] = likely[head.parent] * chance(table, head, log_p);
    }
  }
  // From the slope of how likely heads are, which is overwritten, to those of options.
  void activity_back(const Wide* likely, Wide* slope) {
    for (std::size_t i = table_->order.size(); i-- > 0;) {
      const int h = table_->order[i];
      const Head& head = table_->heads[h];
      if (head.parent < 0) continue;
      const Head& parent = table_->heads[head.parent];
      const Wide each = slope[h] * likely[head.parent];
      slope[head.parent] += slope[h] * chance(*table_, head, log_p_.data());
      const Span span = span_of(*table_, head);
      for (int k = span.first; k < span.last; ++k) {
        option_slopes(parent)[k] += each * exp(log_p(parent)[k]);
      }
    }
  }

  // Gives gradients to outputs, and adds up those of free standard deviations.
  void give_to(const Buffer& y, bool add, int p, int c, int b, int n) {
    for (const Head& head : table_->heads) {
      const int copy = table_->copy_of(head, c);
      if (head.options > 0) {
        Wide* slopes = option_slopes(head);
        log_softmax_back(log_p(head), slopes, head.options);
        for (int k = 0; k < head.options; ++k)
          give(slopes[k], y, p, copy, b, head.place + k, n, add);
      } else {
        const Gaussian& own = normal_slopes(head);
        const Wide bent = bent_[head.first];
        const Wide second = own.log_std * Wide(table_->half) * (Wide(1.0f) - bent * bent);
        give(own.mean, y, p, copy, b, head.place, n, add);
        if (table_->state_std) {
          give(second, y, p, copy, b, head.place + 1, n, add);
        } else {
          free_[head.first].add(second, n);
        }
      }
    }
  }
  void give_free(const Buffer& free, bool add, int p) const {
    for (int i = 0; i < static_cast<int>(free_.size()); ++i) {
      if (!table_->state_std) give(free_[i].total(), free, p, 0, 0, i, 1, add);
    }
  }

 private:
  static Wide chance(const HeadTable& table, const Head& child, const Wide* log_p) {
    const Wide* own = log_p + table.heads[child.parent].first;
    const Span span = span_of(table, child);
    Wide total(0.0f);
    for (int k = span.first; k < span.last; ++k) total += exp(own[k]);
    return total;
  }

  const HeadTable* table_ = nullptr;
  std::vector<Wide> log_p_, option_slopes_, bent_;
  std::vector<Gaussian> normals_, normal_slopes_;
  std::vector<RowSum> free_;
};

// Raw actions drawn, the same in unit form, and their log-probabilities.
inline void sample(const Buffer& y, const Buffer& free, const Buffer& uniform, const Buffer& mask,
                   const Buffer& raw, const Buffer& unit, const Buffer& log_prob, Heads table) {
  const Sizes sizes{y.members, Policy::check(*table, y, free, mask), y.rows, table->size()};
  expect(uniform, "uniform", sizes);
  for (const Buffer& x : {raw, unit, log_prob}) expect_all(x, "what is drawn", sizes);
  emit(y.members, sizes.copies, [=](int p, int c) {
    Policy& policy = Policy::of(*table);
    static thread_local Room rooms[3];
    Wide *drawn = rooms[0](table->size()), *units = rooms[1](table->size());
    Wide* use = rooms[2](table->size());
    each_rows(y.rows, [&](int b, int n) {
      policy.read(y, free, mask, p, c, b, n);
      for (int h = 0; h < table->size(); ++h) {
        drawn[h] = policy.sample(table->heads[h], get(uniform, p, c, b, h, n));
        units[h] = unit_of(*table, h, drawn[h]);
      }
      heads_in_use(*table, units, use);
      for (int h = 0; h < table->size(); ++h) {
        set(drawn[h], raw, p, c, b, h, n);
        set(units[h], unit, p, c, b, h, n);
        set(use[h] * policy.log_prob(table->heads[h], drawn[h]), log_prob, p, c, b, h, n);
      }
    });
  });
}

// The most likely option, the mean.
inline void mode(const Buffer& y, const Buffer& free, const Buffer& mask, const Buffer& raw,
                 const Buffer& unit, Heads table) {
  const Sizes sizes{y.members, Policy::check(*table, y, free, mask), y.rows, table->size()};
  for (const Buffer& x : {raw, unit}) expect_all(x, "what is drawn", sizes);
  emit(y.members, sizes.copies, [=](int p, int c) {
    Policy& policy = Policy::of(*table);
    each_rows(y.rows, [&](int b, int n) {
      policy.read(y, free, mask, p, c, b, n);
      for (int h = 0; h < table->size(); ++h) {
        const Wide own = policy.mode(table->heads[h]);
        set(own, raw, p, c, b, h, n);
        set(unit_of(*table, h, own), unit, p, c, b, h, n);
      }
    });
  });
}

// Options at random: whether a head explores, and then which of those that it may choose.
inline void explore(const Buffer& best, const Buffer& uniform, const Buffer& epsilon,
                    const Buffer& mask, const Buffer& out, Heads table) {
  const Sizes s{out.members, 1, out.rows, table->discrete};
  for (const Buffer& x : {best, out}) expect_all(x, "options", s);
  expect_all(uniform, "uniform", {s.members, 1, 2 * s.rows, s.columns});
  expect_all(epsilon, "epsilon", {s.members, 1, 1, 1});
  expect_if_given(mask, "mask", {s.members, 1, s.rows, table->options});
  emit(s.members, [=](int p) {
    static thread_local Room rooms[2];
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        Wide* log_p = rooms[0](head.options);
        for (int k = 0; k < head.options; ++k) {
          const Wide allowed = get_or(1.0f, mask, p, 0, b, head.first + k, n);
          log_p[k] = select(allowed > 0.0f, Wide(0.0f), Wide(kNever));
        }
        log_softmax(log_p, head.options);
        const Wide coin = get(uniform, p, 0, b, h, n),
                   number = get(uniform, p, 0, s.rows + b, h, n);
        const Wide any = drawn(log_p, number, head.options, rooms[1](head.options));
        set(select(coin < one(epsilon, p), any, get(best, p, 0, b, h, n)), out, p, 0, b, h, n);
      }
    });
  });
}

// Actions drawn so that gradients flow back through them, all heads in use.
struct Reparametrized {
  Buffer y, free, uniform, mask, unit, entropy, log_probs;
  Heads table;

  [[nodiscard]] Sizes check() const {
    const Sizes s{y.members, Policy::check(*table, y, free, mask), y.rows, table->size()};
    expect(uniform, "uniform", s);
    for (const Buffer& x : {unit, entropy}) expect_all(x, "what is drawn", s);
    if (log_probs) {
      expect_all(log_probs, "log_probs", {s.members, s.copies, s.rows, table->options});
    }
    return s;
  }
};
inline void rsample(const Buffer& y, const Buffer& free, const Buffer& uniform, const Buffer& mask,
                    const Buffer& unit, const Buffer& entropy, const Buffer& log_probs,
                    Heads table) {
  const Reparametrized x{y, free, uniform, mask, unit, entropy, log_probs, table};
  const Sizes s = x.check();
  emit(s.members, s.copies, [x, s](int p, int c) {
    Policy& policy = Policy::of(*x.table);
    each_rows(s.rows, [&](int b, int n) {
      policy.read(x.y, x.free, x.mask, p, c, b, n);
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = x.table->heads[h];
        const Wide raw = policy.sample(head, get(x.uniform, p, c, b, h, n));
        set(unit_of(*x.table, h, raw), x.unit, p, c, b, h, n);
        const Wide own = head.options > 0 ? policy.entropy(head) : -policy.log_prob(head, raw);
        set(own, x.entropy, p, c, b, h, n);
        for (int k = 0; x.log_probs && k < head.options; ++k) {
          set(policy.log_p(head)[k], x.log_probs, p, c, b, head.first + k, n);
        }
      }
    });
  });
}
inline void rsample_backward(const Buffer& y, const Buffer& free, const Buffer& uniform,
                             const Buffer& mask, const Buffer& unit, const Buffer& entropy,
                             const Buffer& log_probs, bool add, Heads table) {
  const Reparametrized x{y, free, uniform, mask, unit, entropy, log_probs, table};
  const Sizes s = x.check();
  emit(s.members, [x, s, add](int p) {
    Policy& policy = Policy::of(*x.table);
    if (!add) clear(x.y, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        policy.read(x.y, x.free, x.mask, p, c, b, n);
        for (int h = 0; h < s.columns; ++h) {
          const Head& head = x.table->heads[h];
          const Wide by_entropy = slope(x.entropy, p, c, b, h, n);
          for (int k = 0; k < head.options; ++k) {
            const Wide log_p = policy.log_p(head)[k];
            Wide& to = policy.option_slopes(head)[k];
            to = -by_entropy * exp(log_p) * (log_p + Wide(1.0f));
            if (x.log_probs) to += slope(x.log_probs, p, c, b, head.first + k, n);
          }
          if (head.options > 0) continue;
          // The density of a drawn number changes with its squashing alone: what is drawn moves
          // along with the mean, and is as many standard deviations from it.
          const Gaussian& own = policy.normal(head);
          const Wide moved = exp(own.log_std) * normal_of(get(x.uniform, p, c, b, h, n));
          const Wide squashed = tanh(own.mean + moved);
          const Wide by_raw = slope(x.unit, p, c, b, h, n) * (Wide(1.0f) - squashed * squashed) -
                              by_entropy * (squashed + squashed);
          policy.normal_slopes(head) = {by_raw, by_raw * moved + by_entropy};
        }
        policy.give_to(x.y, add, p, c, b, n);
      });
    }
  });
}

// ---- what a policy says of given actions ---------------------------------------------------

// How much each head counts in n rows: as it is in use; in entropies and divergences, as known.
struct Weights {
  Wide *taken, *now, *before;
  static Weights read(const HeadTable& table, Policy& policy, const Buffer& raw, const Buffer& old,
                      bool given, int p, int c, int b, int n) {
    static thread_local Room rooms[4];
    const int heads = table.size();
    Weights own{rooms[0](heads), nullptr, nullptr};
    Wide* units = rooms[3](std::max(heads, table.options));
    for (int h = 0; h < heads; ++h) units[h] = unit_of(table, h, get(raw, p, c, b, h, n));
    heads_in_use(table, units, own.taken);
    own.now = own.before = own.taken;
    if (given || !table.conditional) return own;
    policy.activity(own.now = rooms[1](heads));
    if (old) {
      for (int k = 0; k < table.options; ++k) units[k] = get(old, p, c, b, k, n);
      Policy::activity(table, units, own.before = rooms[2](heads));
    }
    return own;
  }
};

// Of a continuous head under the policy that acted, whose parameters `old` has: how much wider it
// was, in logarithms, and how far its mean was, in deviations of now.
struct Moved {
  Wide wider, apart;
  HEADWISE_INLINE Moved(const HeadTable& table, const Head& head, const Gaussian& now,
                        const Buffer& old, int p, int c, int b, int n) {
    const int mean = table.options + head.first, log_std = mean + table.continuous();
    wider = get(old, p, c, b, log_std, n) - now.log_std;
    apart = (get(old, p, c, b, mean, n) - now.mean) * exp(-now.log_std);
  }
};
// The divergence of the policy of now from the one that acted.
HEADWISE_INLINE Wide divergence(const HeadTable& table, Policy& policy, const Head& head,
                                const Buffer& old, int p, int c, int b, int n) {
  Wide total(0.0f);
  for (int k = 0; k < head.options; ++k) {
    const Wide was = get(old, p, c, b, head.first + k, n);
    total += exp(was) * (was - policy.log_p(head)[k]);
  }
  if (head.options > 0) return total;
  const Moved by(table, head, policy.normal(head), old, p, c, b, n);
  return Wide(0.5f) * (exp(by.wider + by.wider) + by.apart * by.apart - Wide(1.0f)) - by.wider;
}

inline Sizes check_evaluate(const HeadTable& table, const Buffer& y, const Buffer& free,
                            const Buffer& raw, const Buffer& mask, const Buffer& old,
                            const Buffer& log_prob, const Buffer& entropy, const Buffer& kl) {
  const Sizes sizes{y.members, Policy::check(table, y, free, mask), y.rows, table.size()};
  expect(raw, "raw", sizes);
  const int kept = table.options + 2 * table.continuous();
  expect_if_given(old, "old", {y.members, sizes.copies, y.rows, kept});
  if (static_cast<bool>(old) != static_cast<bool>(kl)) throw Fault("a divergence of an old policy");
  expect_all(log_prob, "log_prob", sizes);
  expect_all(entropy, "entropy", sizes);
  if (kl) expect_all(kl, "kl", sizes);
  return sizes;
}

// Log-probabilities, entropies, and divergences from the policy that acted.
inline void evaluate(const Buffer& y, const Buffer& free, const Buffer& raw, const Buffer& mask,
                     const Buffer& old, const Buffer& log_prob, const Buffer& entropy,
                     const Buffer& kl, Heads table, bool given) {
  const Sizes s = check_evaluate(*table, y, free, raw, mask, old, log_prob, entropy, kl);
  emit(s.members, s.copies, [=](int p, int c) {
    Policy& policy = Policy::of(*table);
    each_rows(s.rows, [&](int b, int n) {
      policy.read(y, free, mask, p, c, b, n);
      const Weights weights = Weights::read(*table, policy, raw, old, given, p, c, b, n);
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        const Wide action = get(raw, p, c, b, h, n);
        set(weights.taken[h] * policy.log_prob(head, action), log_prob, p, c, b, h, n);
        set(weights.now[h] * policy.entropy(head), entropy, p, c, b, h, n);
        if (!kl) continue;
        const Wide own = divergence(*table, policy, head, old, p, c, b, n);
        set(weights.before[h] * own, kl, p, c, b, h, n);
      }
    });
  });
}

// What comes back to a head: by its log-probability, its entropy and its divergence.
struct Returned {
  Wide log_prob, entropy, kl;
};
HEADWISE_INLINE void head_back(const HeadTable& table, Policy& policy, const Head& head, Wide raw,
                               const Returned& by, const Buffer& old, int p, int c, int b, int n) {
  const Wide one(1.0f), zero(0.0f);
  for (int k = 0; k < head.options; ++k) {
    const Wide log_p = policy.log_p(head)[k];
    Wide& to = policy.option_slopes(head)[k];
    to = select(raw == static_cast<float>(k), by.log_prob, zero);
    to -= by.entropy * exp(log_p) * (log_p + one);
    if (old) to -= by.kl * exp(get(old, p, c, b, head.first + k, n));
  }
  if (head.options > 0) return;
  const Gaussian& own = policy.normal(head);
  const Wide inverse = exp(-own.log_std), z = (raw - own.mean) * inverse;
  Gaussian& to = policy.normal_slopes(head);
  to = {by.log_prob * z * inverse, by.log_prob * (z * z - one) + by.entropy};
  if (!old) return;
  const Moved from(table, head, own, old, p, c, b, n);
  to.mean -= by.kl * from.apart * inverse;
  to.log_std += by.kl * (one - exp(from.wider + from.wider) - from.apart * from.apart);
}

inline void evaluate_backward(const Buffer& y, const Buffer& free, const Buffer& raw,
                              const Buffer& mask, const Buffer& old, const Buffer& log_prob,
                              const Buffer& entropy, const Buffer& kl, bool add, Heads table,
                              bool given) {
  const Sizes s = check_evaluate(*table, y, free, raw, mask, old, log_prob, entropy, kl);
  emit(s.members, [=](int p) {
    static thread_local Room room;
    Policy& policy = Policy::of(*table);
    Wide* to_use = room(s.columns);
    if (!add) clear(y, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        policy.read(y, free, mask, p, c, b, n);
        const Weights weights = Weights::read(*table, policy, raw, old, given, p, c, b, n);
        for (int h = 0; h < s.columns; ++h) {
          const Head& head = table->heads[h];
          const Wide by_entropy = slope(entropy, p, c, b, h, n);
          const Wide by_kl = old ? slope(kl, p, c, b, h, n) : Wide(0.0f);
          const Returned by{weights.taken[h] * slope(log_prob, p, c, b, h, n),
                            weights.now[h] * by_entropy, weights.before[h] * by_kl};
          head_back(*table, policy, head, get(raw, p, c, b, h, n), by, old, p, c, b, n);
          to_use[h] = by_entropy * policy.entropy(head);
        }
        if (weights.now != weights.taken) policy.activity_back(weights.now, to_use);
        policy.give_to(y, add, p, c, b, n);
      });
    }
    policy.give_free(free, add, p);
  });
}

}  // namespace headwise::ops
