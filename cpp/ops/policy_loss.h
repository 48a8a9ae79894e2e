// The clipped objective of PPO with its entropy bonus and divergence penalty.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

// The largest log-ratio: beyond it a ratio stops growing, and no gradient flows.
constexpr float kLargest = 20.0f;

// Which heads have a probability ratio together, and what the entropy of each head counts.
using Ratios = std::tuple<std::vector<int>, std::vector<float>>;

inline int count_of(const std::vector<int>& groups, int heads) {
  const bool fits = heads > 0 && static_cast<int>(groups.size()) == heads &&
                    *std::min_element(groups.begin(), groups.end()) >= 0;
  if (!fits) throw Fault("a group for each head");
  const int last = *std::max_element(groups.begin(), groups.end());
  if (last >= heads) throw Fault("more groups than heads");
  return last + 1;
}

// Logarithms of the ratios in n rows.
HEADWISE_INLINE void read_ratios(const std::vector<int>& groups, const Buffer& log_prob,
                                 const Buffer& old, int p, int b, int n, Wide* to, int count) {
  std::fill_n(to, count, Wide(0.0f));
  for (int h = 0; h < log_prob.columns; ++h) {
    to[groups[h]] += get(log_prob, p, 0, b, h, n) - get(old, p, 0, b, h, n);
  }
}

struct PolicyLoss {
  Buffer log_prob, entropy, kl, old, advantage, share, clip, ent_coef, kl_coef, out;
  Ratios ratios;

  [[nodiscard]] int count() const { return count_of(std::get<0>(ratios), log_prob.columns); }
  void check() const {
    const int members = log_prob.members, rows = log_prob.rows, heads = log_prob.columns;
    const Sizes by_head{members, 1, rows, heads}, setting{members, 1, 1, 1};
    expect_all(log_prob, "log_prob", by_head);
    expect_all(entropy, "entropy", by_head);
    if (kl) expect_all(kl, "kl", by_head);
    expect_all(old, "old", by_head);
    expect(advantage, "advantage", {members, 1, rows, count()});
    expect(share, "share", {members, 1, rows, 1});
    expect_all(clip, "clip", setting);
    expect_all(ent_coef, "ent_coef", setting);
    expect_all(kl_coef, "kl_coef", setting);
    expect_all(out, "the loss", {members, 1, 1, 4});
    if (std::get<1>(ratios).size() != std::get<0>(ratios).size())
      throw Fault("a weight for each head");
  }
};

// min(r A, clip(r, 1 - clip, 1 + clip) A), and its slope by the logarithm of r: it stops where the
// held ratio's is the smaller.
struct Surrogate {
  Wide value, slope;
  HEADWISE_INLINE Surrogate(Wide log_ratio, Wide advantage, float clip) {
    const Wide ratio = exp(min(log_ratio, kLargest));
    const Wide held = max(min(ratio, 1.0f + clip), 1.0f - clip) * advantage;
    const Wide free = ratio * advantage;
    value = select(free > held, held, free);
    slope = select(free > held, 0.0f, select(log_ratio > kLargest, 0.0f, free));
  }
};

inline void policy_loss(const Buffer& log_prob, const Buffer& entropy, const Buffer& kl,
                        const Buffer& old, const Buffer& advantage, const Buffer& share,
                        const Buffer& clip, const Buffer& ent_coef, const Buffer& kl_coef,
                        const Buffer& out, const Ratios& ratios) {
  const PolicyLoss x{log_prob, entropy,  kl,      old, advantage, share,
                     clip,     ent_coef, kl_coef, out, ratios};
  x.check();
  emit(log_prob.members, [x, count = x.count()](int p) {
    static thread_local Room room;
    Wide* log_ratios = room(count);
    const auto& [groups, weights] = x.ratios;
    RowSum surrogate, bonus, divergence;
    each_rows(x.log_prob.rows, [&](int b, int n) {
      read_ratios(groups, x.log_prob, x.old, p, b, n, log_ratios, count);
      const Wide share = get(x.share, p, 0, b, 0, n);
      Wide gain(0.0f), spread(0.0f), apart(0.0f);
      for (int g = 0; g < count; ++g) {
        gain += Surrogate(log_ratios[g], get(x.advantage, p, 0, b, g, n), one(x.clip, p)).value;
      }
      for (int h = 0; h < x.log_prob.columns; ++h) {
        spread += Wide(weights[h]) * get(x.entropy, p, 0, b, h, n);
        apart += get_or(0.0f, x.kl, p, 0, b, h, n);
      }
      surrogate.add(gain * share, n);
      bonus.add(spread * share, n);
      divergence.add(apart, n);
    });
    const float apart = divergence.total() / static_cast<float>(x.log_prob.rows);
    float* to = x.out.at(p);
    to[1] = surrogate.total();
    to[2] = bonus.total();
    to[3] = apart;
    to[0] = one(x.kl_coef, p) * apart - to[1] - one(x.ent_coef, p) * to[2];
  });
}

inline void policy_loss_backward(const Buffer& log_prob, const Buffer& entropy, const Buffer& kl,
                                 const Buffer& old, const Buffer& advantage, const Buffer& share,
                                 const Buffer& clip, const Buffer& ent_coef, const Buffer& kl_coef,
                                 const Buffer& out, bool add, const Ratios& ratios) {
  const PolicyLoss x{log_prob, entropy,  kl,      old, advantage, share,
                     clip,     ent_coef, kl_coef, out, ratios};
  x.check();
  if (out.gradients == nullptr) throw Fault("a loss without a gradient");
  emit(log_prob.members, [x, add, count = x.count()](int p) {
    static thread_local Room room;
    Wide* log_ratios = room(count);
    const auto& [groups, weights] = x.ratios;
    const float* by = x.out.gradient(p);
    const Wide by_surrogate(by[1] - by[0]), by_bonus(by[2] - by[0] * one(x.ent_coef, p));
    const Wide by_kl((by[3] + by[0] * one(x.kl_coef, p)) / static_cast<float>(x.log_prob.rows));
    each_rows(x.log_prob.rows, [&](int b, int n) {
      read_ratios(groups, x.log_prob, x.old, p, b, n, log_ratios, count);
      const Wide share = get(x.share, p, 0, b, 0, n);
      for (int g = 0; g < count; ++g) {
        const Surrogate own(log_ratios[g], get(x.advantage, p, 0, b, g, n), one(x.clip, p));
        log_ratios[g] = by_surrogate * share * own.slope;
      }
      for (int h = 0; h < x.log_prob.columns; ++h) {
        give(log_ratios[groups[h]], x.log_prob, p, 0, b, h, n, add);
        give(Wide(weights[h]) * share * by_bonus, x.entropy, p, 0, b, h, n, add);
        if (x.kl) give(by_kl, x.kl, p, 0, b, h, n, add);
      }
    });
  });
}

// What there is so far, and how far the policy has come from the one that acted: the divergence,
// how many ratios are clipped and the joint ratio; then of each head the divergence, how often its
// ratio is clipped, and the entropy.
inline void movement(const Buffer& log_prob, const Buffer& entropy, const Buffer& old,
                     const Buffer& share, const Buffer& clip, const Buffer& so_far,
                     const Buffer& out, const Ratios& ratios) {
  const Sizes s{log_prob.members, 1, log_prob.rows, log_prob.columns};
  const int heads = s.columns, count = count_of(std::get<0>(ratios), heads);
  for (const Buffer& x : {log_prob, entropy, old}) expect_all(x, "a column for each head", s);
  expect(share, "share", {s.members, 1, s.rows, 1});
  expect_all(clip, "clip", {s.members, 1, 1, 1});
  for (const Buffer& x : {so_far, out}) expect_all(x, "the sums", {s.members, 1, 1, 3 + 3 * heads});
  emit(s.members, [=, groups = std::get<0>(ratios)](int p) {
    static thread_local Room room;
    static thread_local std::vector<RowSum> sums;
    sums.assign(3 + 3 * heads, RowSum());
    Wide* outside = room(count);
    each_rows(s.rows, [&](int b, int n) {
      read_ratios(groups, log_prob, old, p, b, n, outside, count);
      const Wide share_of_row = get(share, p, 0, b, 0, n);
      const auto keep = [&](int column, Wide x) { sums[column].add(x * share_of_row, n); };
      Wide apart(0.0f), clipped(0.0f), joint(0.0f);
      for (int g = 0; g < count; ++g) {
        const Wide away = abs(exp(min(outside[g], kLargest)) - Wide(1.0f));
        outside[g] = select(away > one(clip, p), Wide(1.0f), Wide(0.0f));
        clipped += outside[g];
      }
      for (int h = 0; h < heads; ++h) {
        const Wide change = get(log_prob, p, 0, b, h, n) - get(old, p, 0, b, h, n);
        const Wide kl = expm1(change) - change;
        joint += change;
        apart += kl;
        keep(3 + h, kl);
        keep(3 + heads + h, outside[groups[h]]);
        keep(3 + 2 * heads + h, get(entropy, p, 0, b, h, n));
      }
      keep(0, apart);
      keep(1, clipped / Wide(static_cast<float>(count)));
      keep(2, exp(min(joint, kLargest)));
    });
    for (int k = 0; k < out.columns; ++k) out.at(p)[k] = so_far.at(p)[k] + sums[k].total();
  });
}

// The weight of a divergence, grown where that is too large and shrunk where it is small.
inline void adapt_coefficient(const Buffer& divergence, const Buffer& coef, const Buffer& out,
                              float target) {
  const Sizes setting{coef.members, 1, 1, 1};
  for (const Buffer& x : {divergence, coef, out}) expect_all(x, "a setting", setting);
  emit(coef.members, [=](int p) {
    const float apart = one(divergence, p);
    const float factor = apart > target ? 1.5f : apart < target / 1.5f ? 1.0f / 1.5f : 1.0f;
    const float found = one(coef, p) * factor;
    *out.at(p) = found < 1e-4f ? 1e-4f : found > 100.0f ? 100.0f : found;
  });
}

}  // namespace headwise::ops
