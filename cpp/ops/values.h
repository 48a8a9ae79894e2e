// Values of actions: advantages that are centered, added up or each by itself, and their errors.
#pragma once

#include "ops/heads.h"

namespace headwise::ops {

// Each head's first best option.
inline void greedy(const Buffer& y, const Buffer& mask, const Buffer& out, Heads table) {
  const Sizes s{y.members, table->networks(y), y.rows, table->discrete};
  expect_if_given(mask, "mask", {s.members, s.copies, s.rows, table->options});
  expect_all(out, "options", s);
  emit(s.members, s.copies, [=](int p, int c) {
    static thread_local Room room;
    Wide* scores = room(table->options);
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        read_options(head, y, mask, p, table->copy_of(head, c), c, b, n, scores);
        set(best_of(scores, head.options).option, out, p, c, b, h, n);
      }
    });
  });
}

// ---- advantages ----------------------------------------------------------------------------

// An option that an action names, in each of n rows: its number, and its gradient.
HEADWISE_INLINE Wide number_of(const Head& head, const Buffer& y, int p, int copy, int b, int n,
                               Wide option) {
  Wide found(0.0f);
  for (int i = 0; i < n; ++i) {
    const bool exists = option[i] >= 0.0f && option[i] < static_cast<float>(head.options);
    found[i] = exists ? y.row(p, copy, b + i)[head.place + static_cast<int>(option[i])]
                      : std::numeric_limits<float>::quiet_NaN();
  }
  return found;
}
HEADWISE_INLINE void add_slope(const Head& head, const Buffer& y, int p, int copy, int b, int n,
                               Wide option, Wide slope) {
  for (int i = 0; i < n; ++i) {
    if (option[i] >= 0.0f && option[i] < static_cast<float>(head.options)) {
      y.gradient_row(p, copy, b + i)[head.place + static_cast<int>(option[i])] += slope[i];
    }
  }
}

inline Sizes check_advantages(const HeadTable& table, const Buffer& y, const Buffer& action,
                              const Buffer& best, const Buffer& probs, const Buffer& in_use,
                              const Buffer& out) {
  const Sizes s{y.members, table.networks(y), y.rows, table.discrete};
  expect(action, "action", s);
  expect_if_given(best, "best", s);
  expect_if_given(probs, "probs", {s.members, s.copies, s.rows, table.options});
  expect_if_given(in_use, "in_use", s);
  expect_all(out, "advantages", s);
  return s;
}

// The advantages of the options taken, minus that of others, or their mean under probabilities.
inline void advantages(const Buffer& y, const Buffer& action, const Buffer& best,
                       const Buffer& probs, const Buffer& in_use, const Buffer& out, Heads table) {
  const Sizes s = check_advantages(*table, y, action, best, probs, in_use, out);
  emit(s.members, s.copies, [=](int p, int c) {
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        const int copy = table->copy_of(head, c);
        Wide found = number_of(head, y, p, copy, b, n, get(action, p, c, b, h, n));
        if (best) found -= number_of(head, y, p, copy, b, n, get(best, p, c, b, h, n));
        if (probs) {
          Wide mean(0.0f);
          for (int k = 0; k < head.options; ++k) {
            const Wide score = get(y, p, copy, b, head.place + k, n);
            mean = fma(get(probs, p, c, b, head.first + k, n), score, mean);
          }
          found -= mean;
        }
        set(get_or(1.0f, in_use, p, c, b, h, n) * found, out, p, c, b, h, n);
      }
    });
  });
}

inline void advantages_backward(const Buffer& y, const Buffer& action, const Buffer& best,
                                const Buffer& probs, const Buffer& in_use, const Buffer& out,
                                bool add, Heads table) {
  const Sizes s = check_advantages(*table, y, action, best, probs, in_use, out);
  if (y.gradients == nullptr) return;
  emit(s.members, [=](int p) {
    if (!add) clear(y, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        for (int h = 0; h < s.columns; ++h) {
          const Head& head = table->heads[h];
          const int copy = table->copy_of(head, c);
          const Wide by = get_or(1.0f, in_use, p, c, b, h, n) * slope(out, p, c, b, h, n);
          if (probs) {
            for (int k = 0; k < head.options; ++k) {
              const Wide own = -by * get(probs, p, c, b, head.first + k, n);
              give(own, y, p, copy, b, head.place + k, n, add);
            }
          }
          add_slope(head, y, p, copy, b, n, get(action, p, c, b, h, n), by);
          if (best) add_slope(head, y, p, copy, b, n, get(best, p, c, b, h, n), -by);
        }
      });
    }
  });
}

// The plain values of the options taken; a head that is not in use has its best one's.
HEADWISE_INLINE Wide option_to_value(const Buffer& action, const Buffer& best, const Buffer& in_use,
                                     int p, int c, int b, int h, int n) {
  const Wide taken = get(action, p, c, b, h, n);
  if (!best || !in_use) return taken;
  return select(get(in_use, p, c, b, h, n) > 0.0f, taken, get(best, p, c, b, h, n));
}
inline void option_values(const Buffer& y, const Buffer& action, const Buffer& best,
                          const Buffer& in_use, const Buffer& out, Heads table) {
  const Sizes s = check_advantages(*table, y, action, best, Buffer(), in_use, out);
  emit(s.members, s.copies, [=](int p, int c) {
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) {
        const Head& head = table->heads[h];
        const Wide option = option_to_value(action, best, in_use, p, c, b, h, n);
        set(number_of(head, y, p, table->copy_of(head, c), b, n, option), out, p, c, b, h, n);
      }
    });
  });
}
inline void option_values_backward(const Buffer& y, const Buffer& action, const Buffer& best,
                                   const Buffer& in_use, const Buffer& out, bool add, Heads table) {
  const Sizes s = check_advantages(*table, y, action, best, Buffer(), in_use, out);
  if (y.gradients == nullptr) return;
  emit(s.members, [=](int p) {
    if (!add) clear(y, p);
    for (int c = 0; c < s.copies; ++c) {
      each_rows(s.rows, [&](int b, int n) {
        for (int h = 0; h < s.columns; ++h) {
          const Head& head = table->heads[h];
          const Wide option = option_to_value(action, best, in_use, p, c, b, h, n);
          add_slope(head, y, p, table->copy_of(head, c), b, n, option, slope(out, p, c, b, h, n));
        }
      });
    }
  });
}

// ---- V and advantages ----------------------------------------------------------------------

// V is of all heads, a copy for each network, or each head's own: the copy that a head has.
HEADWISE_INLINE int copy_of_value(const Buffer& value, int networks, int c, int h) {
  return value.copies == networks ? c : c * (value.copies / networks) + h;
}
// Of values (networks, columns) that V is added to.
inline void check_value(const Buffer& value, Sizes s) {
  const int copies = value.copies == s.copies ? s.copies : s.copies * s.columns;
  expect_all(value, "V", {s.members, copies, s.rows, 1});
}
// From the gradient of values that V was added to.
HEADWISE_INLINE void value_back(const Buffer& value, const Buffer& out, bool add, int p, int c,
                                int b, int n) {
  if (value.gradients == nullptr) return;
  Wide total(0.0f);
  for (int k = 0; k < out.columns; ++k) {
    const Wide own = slope(out, p, c, b, k, n);
    total += own;
    if (value.copies != out.copies) {
      give(own, value, p, copy_of_value(value, out.copies, c, k), b, 0, n, add);
    }
  }
  if (value.copies == out.copies) give(total, value, p, c, b, 0, n, add);
}

inline void check_total(const Buffer& value, const Buffer& advantage, const Buffer& out,
                        bool adds_up) {
  const Sizes s = sizes_of(advantage);
  expect_all(out, "values", {s.members, s.copies, s.rows, adds_up ? 1 : s.columns});
  if (value) check_value(value, sizes_of(out));
}
// V plus the heads' advantages, added up or each by itself.
inline void total(const Buffer& value, const Buffer& advantage, const Buffer& out, bool adds_up) {
  check_total(value, advantage, out, adds_up);
  emit(out.members, out.copies, [=](int p, int c) {
    const int together = adds_up ? advantage.columns : 1;
    each_rows(out.rows, [&](int b, int n) {
      for (int k = 0; k < out.columns; ++k) {
        Wide sum = get(advantage, p, c, b, k, n);
        for (int h = 1; h < together; ++h) sum += get(advantage, p, c, b, h, n);
        const int copy = copy_of_value(value, out.copies, c, k);
        set(get_or(0.0f, value, p, copy, b, 0, n) + sum, out, p, c, b, k, n);
      }
    });
  });
}
inline void total_backward(const Buffer& value, const Buffer& advantage, const Buffer& out,
                           bool add, bool adds_up) {
  check_total(value, advantage, out, adds_up);
  emit(out.members, out.copies, [=](int p, int c) {
    each_rows(out.rows, [&](int b, int n) {
      for (int h = 0; h < advantage.columns; ++h) {
        give(slope(out, p, c, b, adds_up ? 0 : h, n), advantage, p, c, b, h, n, add);
      }
      value_back(value, out, add, p, c, b, n);
    });
  });
}

// Each head's own values as columns.
inline void check_heads_last(const Buffer& value, const Buffer& out) {
  expect_all(out, "columns", {value.members, 1, value.rows, value.copies});
  check_value(value, sizes_of(out));
}
inline void heads_last(const Buffer& value, const Buffer& out) {
  check_heads_last(value, out);
  emit(out.members, out.columns, [=](int p, int h) {
    each_rows(out.rows, [&](int b, int n) { set(get(value, p, h, b, 0, n), out, p, 0, b, h, n); });
  });
}
inline void heads_last_backward(const Buffer& value, const Buffer& out, bool add) {
  check_heads_last(value, out);
  emit(out.members, [=](int p) {
    each_rows(out.rows, [&](int b, int n) { value_back(value, out, add, p, 0, b, n); });
  });
}

// ---- errors --------------------------------------------------------------------------------

struct ValueError {
  Buffer predicted, target, weight, out;
  float coef;
  bool huber;

  void check() const {
    const Sizes s = sizes_of(predicted);
    expect(target, "target", s);
    expect(weight, "weight", s);
    expect_all(out, "the loss", {s.members, s.copies, 1, 3});
  }
  void check_back() const {
    check();
    if (out.gradients == nullptr) throw Fault("a loss without a gradient");
  }
};

// Loss, size of the error and value, sums weighted by row and column.
inline void value_error(const Buffer& predicted, const Buffer& target, const Buffer& weight,
                        const Buffer& out, float coef, bool huber) {
  const ValueError x{predicted, target, weight, out, coef, huber};
  x.check();
  emit(out.members, out.copies, [x](int p, int c) {
    RowSum loss, size, value;
    each_rows(x.predicted.rows, [&](int b, int n) {
      for (int k = 0; k < x.predicted.columns; ++k) {
        const Wide own = get(x.predicted, p, c, b, k, n), weight = get(x.weight, p, c, b, k, n);
        const Wide error = own - get(x.target, p, c, b, k, n), far = abs(error);
        const Wide square = error * error;
        const Wide large =
            x.huber ? select(far < 1.0f, Wide(0.5f) * square, far - Wide(0.5f)) : square;
        loss.add(large * weight, n);
        size.add(far * weight, n);
        value.add(own * weight, n);
      }
    });
    float* to = x.out.at(p, c);
    to[0] = x.coef * loss.total();
    to[1] = size.total();
    to[2] = value.total();
  });
}
inline void value_error_backward(const Buffer& predicted, const Buffer& target,
                                 const Buffer& weight, const Buffer& out, bool add, float coef,
                                 bool huber) {
  const ValueError x{predicted, target, weight, out, coef, huber};
  x.check_back();
  emit(out.members, out.copies, [x, add](int p, int c) {
    const Wide by(x.out.gradient(p, c)[0] * x.coef);
    each_rows(x.predicted.rows, [&](int b, int n) {
      for (int k = 0; k < x.predicted.columns; ++k) {
        const Wide error = get(x.predicted, p, c, b, k, n) - get(x.target, p, c, b, k, n);
        const Wide slope = x.huber ? max(min(error, 1.0f), -1.0f) : error + error;
        give(by * get(x.weight, p, c, b, k, n) * slope, x.predicted, p, c, b, k, n, add);
      }
    });
  });
}

// The same, or that of values held near the old ones if it is larger over the batch.
struct ClippedValueError {
  Buffer predicted, target, old, weight, out;
  float coef, clip;

  void check() const {
    ValueError{predicted, target, weight, out, coef, false}.check();
    expect(old, "old", sizes_of(predicted));
  }
  [[nodiscard]] HEADWISE_INLINE Wide held(Wide own, Wide before) const {
    return before + max(min(own - before, clip), -clip);
  }
  // The sums: of squares, of squares of held values, of sizes and of values.
  struct Sums {
    RowSum free, held, size, value;
  };
  [[nodiscard]] Sums sums(int p, int c) const {
    Sums all;
    each_rows(predicted.rows, [&](int b, int n) {
      for (int k = 0; k < predicted.columns; ++k) {
        const Wide own = get(predicted, p, c, b, k, n), goal = get(target, p, c, b, k, n);
        const Wide error = own - goal, other = held(own, get(old, p, c, b, k, n)) - goal;
        const Wide counts = get(weight, p, c, b, k, n);
        all.free.add(error * error * counts, n);
        all.held.add(other * other * counts, n);
        all.size.add(abs(error) * counts, n);
        all.value.add(own * counts, n);
      }
    });
    return all;
  }
};
inline void clipped_value_error(const Buffer& predicted, const Buffer& target, const Buffer& old,
                                const Buffer& weight, const Buffer& out, float coef, float clip) {
  const ClippedValueError x{predicted, target, old, weight, out, coef, clip};
  x.check();
  emit(out.members, out.copies, [x](int p, int c) {
    const auto sums = x.sums(p, c);
    const float free = sums.free.total(), held = sums.held.total();
    float* to = x.out.at(p, c);
    to[0] = x.coef * (free >= held ? free : held);
    to[1] = sums.size.total();
    to[2] = sums.value.total();
  });
}
inline void clipped_value_error_backward(const Buffer& predicted, const Buffer& target,
                                         const Buffer& old, const Buffer& weight, const Buffer& out,
                                         bool add, float coef, float clip) {
  const ClippedValueError x{predicted, target, old, weight, out, coef, clip};
  x.check();
  ValueError{predicted, target, weight, out, coef, false}.check_back();
  emit(out.members, out.copies, [x, add](int p, int c) {
    const auto sums = x.sums(p, c);
    const float free = sums.free.total(), held = sums.held.total();
    // Where both are the same each has half of the gradient.
    const float part = free > held ? 1.0f : free < held ? 0.0f : 0.5f;
    const float by = 2.0f * x.out.gradient(p, c)[0] * x.coef;
    each_rows(x.predicted.rows, [&](int b, int n) {
      for (int k = 0; k < x.predicted.columns; ++k) {
        const Wide own = get(x.predicted, p, c, b, k, n), goal = get(x.target, p, c, b, k, n);
        const Wide before = get(x.old, p, c, b, k, n), other = x.held(own, before) - goal;
        const Wide beyond = select(abs(own - before) > x.clip, 0.0f, other);
        const Wide slope = Wide(part) * (own - goal) + Wide(1.0f - part) * beyond;
        give(Wide(by) * get(x.weight, p, c, b, k, n) * slope, x.predicted, p, c, b, k, n, add);
      }
    });
  });
}

// Which heads each action in unit form uses.
inline void in_use(const Buffer& action, const Buffer& out, Heads table) {
  const Sizes s{action.members, action.copies, action.rows, table->size()};
  expect_all(action, "action", s);
  expect_all(out, "zeros and ones", s);
  emit(s.members, s.copies, [=](int p, int c) {
    static thread_local Room rooms[2];
    Wide *unit = rooms[0](s.columns), *use = rooms[1](s.columns);
    each_rows(s.rows, [&](int b, int n) {
      for (int h = 0; h < s.columns; ++h) unit[h] = get(action, p, c, b, h, n);
      heads_in_use(*table, unit, use);
      for (int h = 0; h < s.columns; ++h) set(use[h], out, p, c, b, h, n);
    });
  });
}

// What errors of heads count whose mean is over the rows in which heads are in use: of each head
// over its own, or of all together.
inline void shares_in_use(const Buffer& use, const Buffer& out, float scale, bool by_head) {
  expect_all(out, "shares", sizes_of(use));
  emit(out.members, out.copies, [=](int p, int c) {
    const int together = by_head ? 1 : out.columns;
    for (int first = 0; first < out.columns; first += together) {
      RowSum sum;
      for (int k = first; k < first + together; ++k) {
        each_rows(out.rows, [&](int b, int n) { sum.add(get(use, p, c, b, k, n), n); });
      }
      const float count = sum.total(), each = scale / (count < 1.0f ? 1.0f : count);
      for (int k = first; k < first + together; ++k) {
        each_rows(out.rows, [&](int b, int n) {
          set(get(use, p, c, b, k, n) * Wide(each), out, p, c, b, k, n);
        });
      }
    }
  });
}

// ---- targets -------------------------------------------------------------------------------

// A value of which the least of all copies counts.
HEADWISE_INLINE Wide least_of(const Buffer& value, int p, int b, int k, int n) {
  Wide found = get(value, p, 0, b, k, n);
  for (int c = 1; c < value.copies; ++c) found = least(found, get(value, p, c, b, k, n));
  return found;
}

// The reward, and what the next state is worth.
inline void td_target(const Buffer& reward, const Buffer& discount, const Buffer& value,
                      const Buffer& bonus, const Buffer& expected, const Buffer& out) {
  const Sizes s{out.members, 1, out.rows, out.columns};
  expect(reward, "reward", s);
  expect(discount, "discount", s);
  expect(value, "value", {s.members, value.copies, s.rows, s.columns});
  expect_if_given(bonus, "bonus", s);
  expect_if_given(expected, "expected", s);
  expect_all(out, "target", s);
  emit(s.members, [=](int p) {
    each_rows(s.rows, [&](int b, int n) {
      for (int k = 0; k < s.columns; ++k) {
        Wide following = least_of(value, p, b, k, n) + get_or(0.0f, bonus, p, 0, b, k, n);
        following -= get_or(0.0f, expected, p, 0, b, k, n);
        const Wide found = get(reward, p, 0, b, k, n) + get(discount, p, 0, b, k, n) * following;
        set(found, out, p, 0, b, k, n);
      }
    });
  });
}

// What the next value counts: nothing where the task has ended.
inline void discount_of(const Buffer& terminated, const Buffer& gamma, const Buffer& out) {
  expect(terminated, "terminated", sizes_of(out));
  expect(gamma, "gamma", sizes_of(out));
  emit(out.members, out.copies, [=](int p, int c) {
    each_rows(out.rows, [&](int b, int n) {
      for (int k = 0; k < out.columns; ++k) {
        const Wide goes_on = Wide(1.0f) - get(terminated, p, c, b, k, n);
        set(get(gamma, p, c, b, k, n) * goes_on, out, p, c, b, k, n);
      }
    });
  });
}

// Minus what an actor gains: the mean over rows, the sum over columns.
inline void check_actor_loss(const Buffer& value, const Buffer& bonus, const Buffer& share,
                             const Buffer& out) {
  const Sizes s{value.members, 1, value.rows, value.columns};
  expect_if_given(bonus, "bonus", s);
  expect_if_given(share, "share", s);
  expect_all(out, "the loss", {s.members, 1, 1, 1});
}
inline void actor_loss(const Buffer& value, const Buffer& bonus, const Buffer& share,
                       const Buffer& out) {
  check_actor_loss(value, bonus, share, out);
  emit(out.members, [=](int p) {
    RowSum sum;
    each_rows(value.rows, [&](int b, int n) {
      for (int k = 0; k < value.columns; ++k) {
        const Wide gain = least_of(value, p, b, k, n) + get_or(0.0f, bonus, p, 0, b, k, n);
        sum.add(gain * get_or(1.0f, share, p, 0, b, k, n), n);
      }
    });
    *out.at(p) = -sum.total() / static_cast<float>(value.rows);
  });
}
inline void actor_loss_backward(const Buffer& value, const Buffer& bonus, const Buffer& share,
                                const Buffer& out, bool add) {
  check_actor_loss(value, bonus, share, out);
  if (bonus && bonus.gradients != nullptr)
    expect_all(bonus, "bonus", {value.members, 1, value.rows, value.columns});
  if (out.gradients == nullptr) throw Fault("a loss without a gradient");
  emit(out.members, [=](int p) {
    const Wide by(-*out.gradient(p) / static_cast<float>(value.rows));
    each_rows(value.rows, [&](int b, int n) {
      for (int k = 0; k < value.columns; ++k) {
        const Wide own = by * get_or(1.0f, share, p, 0, b, k, n);
        if (bonus) give(own, bonus, p, 0, b, k, n, add);
        const Wide low = least_of(value, p, b, k, n);
        Wide ties(0.0f);  // copies that are the least together share the gradient
        for (int c = 0; c < value.copies; ++c) {
          ties += select(get(value, p, c, b, k, n) == low, Wide(1.0f), Wide(0.0f));
        }
        for (int c = 0; c < value.copies; ++c) {
          const Mask is_least = get(value, p, c, b, k, n) == low;
          const Wide part = select(is_least, own, Wide(0.0f)) / ties;  // NaN if the least one is
          give(part, value, p, c, b, k, n, add);
        }
      }
    });
  });
}

// ---- numbers, each by itself ---------------------------------------------------------------

// The mean over rows.
inline void check_row_mean(const Buffer& x, const Buffer& out) {
  expect_all(out, "means", {x.members, x.copies, 1, x.columns});
}
inline void row_mean(const Buffer& x, const Buffer& out) {
  check_row_mean(x, out);
  emit(x.members, x.copies, [=](int p, int c) {
    for (int k = 0; k < x.columns; ++k) {
      RowSum sum;
      each_rows(x.rows, [&](int b, int n) { sum.add(get(x, p, c, b, k, n), n); });
      out.at(p, c)[k] = sum.total() / static_cast<float>(x.rows);
    }
  });
}
inline void row_mean_backward(const Buffer& x, const Buffer& out, bool add) {
  check_row_mean(x, out);
  emit(x.members, x.copies, [=](int p, int c) {
    for (int k = 0; k < x.columns; ++k) {
      const Wide by = slope(out, p, c, 0, k, 1)[0] / static_cast<float>(x.rows);
      each_rows(x.rows, [&](int b, int n) { give(by, x, p, c, b, k, n, add); });
    }
  });
}

// f(x, y) of numbers; what has one copy, row or column serves all.
template <class F>
void each_pair(const Buffer& x, const Buffer& y, const Buffer& out, F f) {
  expect(x, "x", sizes_of(out));
  expect(y, "y", sizes_of(out));
  emit(out.members, out.copies, [=](int p, int c) {
    for (int k = 0; k < out.columns; ++k) {
      each_rows(out.rows, [&](int b, int n) {
        set(f(get(x, p, c, b, k, n), get(y, p, c, b, k, n)), out, p, c, b, k, n);
      });
    }
  });
}
// The gradient of x is that of the result times g(y); what serves several has the sum of theirs.
template <class G>
void each_pair_back(const Buffer& x, const Buffer& y, const Buffer& out, bool add, G g) {
  expect(x, "x", sizes_of(out));
  expect(y, "y", sizes_of(out));
  if (x.gradients == nullptr) return;
  emit(out.members, [=](int p) {
    if (!add) clear(x, p);
    for (int c = 0; c < out.copies; ++c) {
      for (int k = 0; k < out.columns; ++k) {
        RowSum sum;
        each_rows(out.rows, [&](int b, int n) {
          const Wide own = slope(out, p, c, b, k, n) * g(get(y, p, c, b, k, n));
          if (x.rows == out.rows) {
            give(own, x, p, c, b, x.columns > 1 ? k : 0, n, true);
          } else {
            sum.add(own, n);
          }
        });
        if (x.rows != out.rows) give(sum.total(), x, p, c, 0, x.columns > 1 ? k : 0, 1, true);
      }
    }
  });
}
inline void multiply(const Buffer& x, const Buffer& y, const Buffer& out) {
  each_pair(x, y, out, [](Wide a, Wide b) { return a * b; });
}
inline void multiply_backward(const Buffer& x, const Buffer& y, const Buffer& out, bool add) {
  each_pair_back(x, y, out, add, [](Wide b) { return b; });
  each_pair_back(y, x, out, add, [](Wide a) { return a; });
}
inline void add(const Buffer& x, const Buffer& y, const Buffer& out) {
  each_pair(x, y, out, [](Wide a, Wide b) { return a + b; });
}
inline void add_backward(const Buffer& x, const Buffer& y, const Buffer& out, bool add) {
  each_pair_back(x, y, out, add, [](Wide) { return Wide(1.0f); });
  each_pair_back(y, x, out, add, [](Wide) { return Wide(1.0f); });
}

}  // namespace headwise::ops
