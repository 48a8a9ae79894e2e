// Actions as inputs of networks: one-hot options and numbers; and what is asked about them.
#pragma once

#include "ops/heads.h"

namespace headwise::ops {

using Columns = std::shared_ptr<Embedding>;  // what is recorded keeps it alive
using Questions = std::shared_ptr<Queries>;

// What a column of an embedded action is made of: an option's weight, the mean number of a bin, or
// a number of the action.
struct Source {
  int head, first, count;  // options of it, if weights are given
  float value;             // of the option that it stands for; -1 for a number
  float scale, shift;
};
inline Source source_of(const Embedding& e, std::size_t z) {
  const Head& head = e.table.heads[e.heads[z]];
  const bool is_option = e.values[z] >= 0;
  return {e.heads[z],
          head.first + (is_option ? e.values[z] : 0),
          is_option ? 1 : head.options,
          static_cast<float>(e.values[z]),
          e.scales[z],
          e.shifts[z]};
}
inline Sizes check_embed(const Embedding& e, const Buffer& action, const Buffer& options,
                         const Buffer& in_use, const Buffer& out) {
  const Sizes s{action.members, action.copies, action.rows, e.table.size()};
  expect_all(action, "action", s);
  if (options) expect_all(options, "options", {s.members, s.copies, s.rows, e.table.options});
  expect_if_given(in_use, "in_use", s);
  expect_all(out, "columns", {s.members, s.copies, s.rows, static_cast<int>(e.heads.size())});
  return s;
}

// Actions as rows of inputs.
inline void embed(const Buffer& action, const Buffer& options, const Buffer& in_use,
                  const Buffer& out, Columns embedding) {
  const Sizes s = check_embed(*embedding, action, options, in_use, out);
  emit(s.members, s.copies, [=](int p, int c) {
    for (int z = 0; z < out.columns; ++z) {
      const Source from = source_of(*embedding, z);
      each_rows(s.rows, [&](int b, int n) {
        Wide found;
        if (options && from.count > 0) {
          found = from.value >= 0.0f ? get(options, p, c, b, from.first, n) : Wide(0.0f);
          for (int k = 1; from.value < 0.0f && k < from.count; ++k) {
            found = fma(get(options, p, c, b, from.first + k, n), static_cast<float>(k), found);
          }
        } else {
          found = get(action, p, c, b, from.head, n);
          if (from.value >= 0.0f) found = select(found == from.value, Wide(1.0f), Wide(0.0f));
        }
        if (from.value < 0.0f) found = found * Wide(from.scale) + Wide(from.shift);
        set(found * get_or(1.0f, in_use, p, c, b, from.head, n), out, p, c, b, z, n);
      });
    }
  });
}
inline void embed_backward(const Buffer& action, const Buffer& options, const Buffer& in_use,
                           const Buffer& out, bool add, Columns embedding) {
  const Sizes s = check_embed(*embedding, action, options, in_use, out);
  emit(s.members, [=](int p) {
    if (!add) clear(action, p);
    if (options && !add) clear(options, p);
    for (int c = 0; c < s.copies; ++c) {
      for (int z = 0; z < out.columns; ++z) {
        const Source from = source_of(*embedding, z);
        each_rows(s.rows, [&](int b, int n) {
          Wide by = slope(out, p, c, b, z, n) * get_or(1.0f, in_use, p, c, b, from.head, n);
          if (from.value < 0.0f) by *= Wide(from.scale);
          if (options && from.count > 0) {
            for (int k = 0; k < from.count; ++k) {
              const Wide own = from.value < 0.0f ? by * Wide(static_cast<float>(k)) : by;
              give(own, options, p, c, b, from.first + k, n, true);
            }
          } else if (from.value < 0.0f) {
            give(by, action, p, c, b, from.head, n, true);
          }
        });
      }
    }
  });
}

// ---- relaxed options -----------------------------------------------------------------------

// The Gumbel-softmax of a head's options in some rows.
HEADWISE_INLINE void gumbel_softmax(const Head& head, int widest, const Buffer& log_probs,
                                    const Buffer& noise, Wide softness, int p, int b, int n,
                                    int number, Wide* to) {
  for (int k = 0; k < head.options; ++k) {
    const Wide uniform = get(noise, p, 0, b, number * widest + k, n);
    const Wide gumbel = -log(-log(min(max(uniform, 1e-6f), 1.0f - 1e-6f)));
    to[k] = (get(log_probs, p, 0, b, head.first + k, n) + gumbel) / softness;
  }
  log_softmax(to, head.options);
}
inline int widest_of(const HeadTable& table) {
  int widest = 0;
  for (const Head& head : table.heads) widest = std::max(widest, head.options);
  return widest;
}
inline Sizes check_relax(const HeadTable& table, const Buffer& log_probs, const Buffer& noise,
                         const Buffer& softness, const Buffer& hot, const Buffer& options) {
  const Sizes s{log_probs.members, 1, log_probs.rows, table.discrete};
  for (const Buffer& x : {log_probs, hot}) {
    expect_all(x, "numbers of options", {s.members, 1, s.rows, table.options});
  }
  expect_all(noise, "noise", {s.members, 1, s.rows, s.columns * widest_of(table)});
  expect_all(softness, "softness", {s.members, 1, 1, 1});
  expect_all(options, "options", s);
  return s;
}

// One-hot options with the gradient of a Gumbel-softmax, and which they are.
inline void relax(const Buffer& log_probs, const Buffer& noise, const Buffer& softness,
                  const Buffer& hot, const Buffer& options, Heads table) {
  const Sizes s = check_relax(*table, log_probs, noise, softness, hot, options);
  const int widest = widest_of(*table);
  emit(s.members, [=](int p) {
    static thread_local Room room;
    Wide* soft = room(widest);
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        gumbel_softmax(head, widest, log_probs, noise, one(softness, p), p, b, n, h, soft);
        const Wide option = best_of(soft, head.options).option;
        set(option, options, p, 0, b, h, n);
        for (int k = 0; k < head.options; ++k) {
          const Wide is = select(option == static_cast<float>(k), Wide(1.0f), Wide(0.0f));
          set(is, hot, p, 0, b, head.first + k, n);
        }
      }
    });
  });
}
inline void relax_backward(const Buffer& log_probs, const Buffer& noise, const Buffer& softness,
                           const Buffer& hot, const Buffer& options, bool add, Heads table) {
  const Sizes s = check_relax(*table, log_probs, noise, softness, hot, options);
  const int widest = widest_of(*table);
  emit(s.members, [=](int p) {
    static thread_local Room room;
    Wide* soft = room(widest);
    const Wide softness_of(one(softness, p));
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        gumbel_softmax(head, widest, log_probs, noise, softness_of, p, b, n, h, soft);
        Wide mean(0.0f);
        for (int k = 0; k < head.options; ++k) {
          soft[k] = exp(soft[k]);
          mean = fma(soft[k], slope(hot, p, 0, b, head.first + k, n), mean);
        }
        for (int k = 0; k < head.options; ++k) {
          const Wide own = soft[k] * (slope(hot, p, 0, b, head.first + k, n) - mean);
          give(own / softness_of, log_probs, p, 0, b, head.first + k, n, add);
        }
      }
    });
  });
}

// ---- counterfactuals -----------------------------------------------------------------------

// Rows once for each query; with its option in the place of an action's own.
inline void ask(const Buffer& x, const Buffer& out, Questions queries, bool substitute) {
  const int count = static_cast<int>(queries->rows.size());
  expect_all(out, "rows", {x.members, x.copies, count, x.columns});
  for (int q = 0; q < count; ++q) {
    if (queries->rows[q] >= x.rows || (substitute && queries->heads[q] >= x.columns)) {
      throw Fault("a query about a row or a head that is not there");
    }
  }
  emit(x.members, x.copies, [=](int p, int c) {
    for (int q = 0; q < count; ++q) {
      float* to = out.row(p, c, q);
      std::copy_n(x.row(p, c, queries->rows[q]), x.columns, to);
      if (substitute) to[queries->heads[q]] = static_cast<float>(queries->options[q]);
    }
  });
}

inline void check_expected_value(const Buffer& log_probs, const Buffer& found, const Buffer& paid,
                                 const Buffer& out, const Queries& queries) {
  const int count = static_cast<int>(queries.rows.size());
  expect_all(found, "answers", {log_probs.members, found.copies, count, 1});
  if (paid) expect_all(paid, "pay", {log_probs.members, 1, count, paid.columns});
  expect_all(out, "values", {log_probs.members, 1, log_probs.rows, 1});
  for (int q = 0; q < count; ++q) {
    if (queries.rows[q] >= log_probs.rows || queries.columns[q] >= log_probs.columns) {
      throw Fault("a query about a row or an option that is not there");
    }
  }
}
// What a query says: the least of all copies, with what is paid, for the states it stands for.
HEADWISE_INLINE float answer(const Buffer& found, const Buffer& paid, float stands_for, int p,
                             int q) {
  float least = *found.row(p, 0, q);
  for (int c = 1; c < found.copies; ++c) {
    const float own = *found.row(p, c, q);
    if (!(own >= least)) least = least == least ? own : least;  // NaN if any of them is
  }
  if (paid) {
    float sum = 0.0f;
    for (int k = 0; k < paid.columns; ++k) sum += paid.row(p, 0, q)[k];
    least += sum;
  }
  return least * stands_for;
}
// What each discrete head may expect while the other heads are as drawn, summed.
inline void expected_value(const Buffer& log_probs, const Buffer& found, const Buffer& paid,
                           const Buffer& out, Questions queries) {
  check_expected_value(log_probs, found, paid, out, *queries);
  emit(out.members, [=](int p) {
    for (int b = 0; b < out.rows; ++b) *out.row(p, 0, b) = 0.0f;
    for (std::size_t q = 0; q < queries->rows.size(); ++q) {
      const int b = queries->rows[q], own = static_cast<int>(q);
      const float chance = exp(Wide(log_probs.row(p, 0, b)[queries->columns[q]]))[0];
      *out.row(p, 0, b) += chance * answer(found, paid, queries->stands_for, p, own);
    }
  });
}
inline void expected_value_backward(const Buffer& log_probs, const Buffer& found,
                                    const Buffer& paid, const Buffer& out, bool add,
                                    Questions queries) {
  check_expected_value(log_probs, found, paid, out, *queries);
  if (log_probs.gradients == nullptr) return;
  emit(out.members, [=](int p) {
    if (!add) clear(log_probs, p);
    for (std::size_t q = 0; q < queries->rows.size(); ++q) {
      const int b = queries->rows[q], own = static_cast<int>(q), k = queries->columns[q];
      const float chance = exp(Wide(log_probs.row(p, 0, b)[k]))[0];
      const float by = out.gradients == nullptr ? 0.0f : *out.gradient_row(p, 0, b);
      const float each = chance * answer(found, paid, queries->stands_for, p, own);
      log_probs.gradient_row(p, 0, b)[k] += by * each;
    }
  });
}

}  // namespace headwise::ops
