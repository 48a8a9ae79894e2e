// Advantages of a rollout, from rewards and values.
#pragma once

#include "ops/program.h"

namespace headwise::ops {

// Generalized advantage estimates, step after step; with weights each residual is shared out among
// heads before it is summed. A value follows an episode that was cut off, none follows one that
// ended, and no trace crosses either.
inline void gae(const Buffer& reward, const Buffer& value, const Buffer& next_value,
                const Buffer& terminated, const Buffer& truncated, const Buffer& weight,
                const Buffer& gamma, const Buffer& trace_decay, const Buffer& out, int num_envs) {
  const Sizes s{out.members, 1, out.rows, out.columns};
  if (num_envs < 1 || s.rows % num_envs != 0) throw Fault("rows of so many environments");
  for (const Buffer& x : {reward, value, next_value, terminated, truncated}) {
    expect(x, "a column of the rollout", s);
  }
  expect_if_given(weight, "weight", s);
  for (const Buffer& x : {gamma, trace_decay}) expect_all(x, "a setting", {s.members, 1, 1, 1});
  expect_all(out, "advantages", s);
  emit(s.members, [=](int p) {
    const Wide discount(one(gamma, p)), decay(one(trace_decay, p)), all(1.0f);
    for (int k = 0; k < s.columns; ++k) {
      for (int e = 0; e < num_envs; e += kWide) {
        const int n = std::min(kWide, num_envs - e);
        Wide following(0.0f);
        for (int b = s.rows - num_envs + e; b >= 0; b -= num_envs) {
          const Wide goes_on = all - get(terminated, p, 0, b, 0, n);
          const Wide next = discount * get(next_value, p, 0, b, k, n) * goes_on;
          const Wide delta = get(reward, p, 0, b, k, n) + next - get(value, p, 0, b, k, n);
          const Wide factor = discount * decay * goes_on * (all - get(truncated, p, 0, b, 0, n));
          following = fma(factor, following, get_or(1.0f, weight, p, 0, b, k, n) * delta);
          set(following, out, p, 0, b, k, n);
        }
      }
    }
  });
}

// Weights of rows as shares of their member's total.
inline void row_shares(const Buffer& valid, const Buffer& out) {
  const Sizes s{out.members, 1, out.rows, out.columns};
  expect_all(valid, "weights of rows", s);
  expect_all(out, "shares", s);
  emit(s.members, [=](int p) {
    RowSum sum;
    for (int k = 0; k < s.columns; ++k) {
      each_rows(s.rows, [&](int b, int n) { sum.add(get(valid, p, 0, b, k, n), n); });
    }
    const float total = sum.total();
    const Wide all(total < 1.0f ? 1.0f : total);
    for (int k = 0; k < s.columns; ++k) {
      each_rows(s.rows,
                [&](int b, int n) { set(get(valid, p, 0, b, k, n) / all, out, p, 0, b, k, n); });
    }
  });
}

// Brought to mean 0 and standard deviation 1 within each member, all columns together.
inline void standardize(const Buffer& x, const Buffer& share, const Buffer& out) {
  const Sizes s{out.members, 1, out.rows, out.columns};
  expect_all(x, "x", s);
  expect(share, "share", {s.members, 1, s.rows, 1});
  expect_all(out, "what is standardized", s);
  emit(s.members, [=](int p) {
    const Wide columns(static_cast<float>(s.columns));
    const auto weighted = [&](auto&& f) {
      RowSum sum;
      for (int k = 0; k < s.columns; ++k) {
        each_rows(s.rows, [&](int b, int n) {
          sum.add(f(get(x, p, 0, b, k, n)) * (get(share, p, 0, b, 0, n) / columns), n);
        });
      }
      return sum.total();
    };
    const Wide mean(weighted([](Wide y) { return y; }));
    const float variance = weighted([mean](Wide y) { return (y - mean) * (y - mean); });
    const Wide scale(std::sqrt(variance) + std::numeric_limits<float>::epsilon());
    for (int k = 0; k < s.columns; ++k) {
      each_rows(s.rows, [&](int b, int n) {
        set((get(x, p, 0, b, k, n) - mean) / scale, out, p, 0, b, k, n);
      });
    }
  });
}

}  // namespace headwise::ops
