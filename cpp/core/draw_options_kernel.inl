// Actions drawn, judged and relaxed, one head of sixteen rows at a time; see core/draw_options.h
// and core/isa.h.
namespace headwise::options::HEADWISE_ISA {

#include "core/option_lanes.inl"

// Some rows from `row` on.
struct Part {
  std::int64_t row;
  int count;
};

inline void draw_choice(const Part& part, std::int64_t head, const Actor& actor,
                        const Rows& outputs, const Rows& uniform, const Drawn& drawn) noexcept {
  const auto [row, count] = part;
  const Heads& heads = actor.choices;
  const std::int64_t first = heads.bounds[head], options = heads.bounds[head + 1] - first;
  const float* logits = outputs.at + row * outputs.apart + 2 * actor.num_ranges + first;
  Lanes log_p[kMaxOptions], p[kMaxOptions];
  transpose(logits, outputs.apart, options, count, log_p);
  softmax(options, log_p, p);
  Lanes entropy = {}, total = {}, threshold = {}, reached = {}, below = {};
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      entropy[i] -= p[k][i] * log_p[k][i];
      total[i] += p[k][i];
    }
  }
  for (int i = 0; i < count; ++i) threshold[i] = uniform.at[(row + i) * uniform.apart + head];
  for (int i = 0; i < kLanes; ++i) threshold[i] *= total[i];
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      reached[i] += p[k][i];
      below[i] += reached[i] <= threshold[i] ? 1.0f : 0.0f;
    }
  }
  const std::int64_t apart = heads.count * heads.most;
  float* log_probs = drawn.log_probs + row * apart + head * heads.most;
  transpose_back(log_p, options, count, log_probs, apart);
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = (row + i) * actor.all + actor.choice_places[head];
    drawn.unit[at] = below[i];
    drawn.entropy[at] = entropy[i];
    for (std::int64_t k = options; k < heads.most; ++k) log_probs[i * apart + k] = kNever;
  }
}

inline void draw_range(const Part& part, std::int64_t range, const Actor& actor,
                       const Rows& outputs, const Rows& uniform, const Drawn& drawn) noexcept {
  const auto [row, count] = part;
  Lanes mean = {}, free = {}, u = {}, unit, entropy, far;
  for (int i = 0; i < count; ++i) {
    const float* mine = outputs.at + (row + i) * outputs.apart + 2 * range;
    mean[i] = mine[0];
    free[i] = mine[1];
    u[i] = uniform.at[(row + i) * uniform.apart + actor.choices.count + range];
  }
  for (int i = 0; i < kLanes; ++i) {
    const float wide = tanh_approx(free[i]) * actor.half + (actor.low + actor.half);
    const float normal = normal_of(u[i]);
    far[i] = exp_approx(wide) * normal;
    const float x = mean[i] + far[i];
    // log(1 - tanh(x)^2) = 2 (log 2 - x - softplus(-2 x))
    const float size = x < 0.0f ? -x : x;
    const float softplus = (x < 0.0f ? -2.0f * x : 0.0f) + log_approx(1.0f + exp_approx(-2.0f * size));
    const float slope = 2.0f * (0.69314718f - x - softplus);
    unit[i] = tanh_approx(x);
    entropy[i] = 0.5f * normal * normal + wide + 0.91893853f + slope;
  }
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = (row + i) * actor.all + actor.range_places[range];
    drawn.unit[at] = unit[i];
    drawn.entropy[at] = entropy[i];
    drawn.spread[(row + i) * actor.num_ranges + range] = far[i];
  }
}

inline void draw(std::int64_t rows, const Actor& actor, const Rows& outputs, const Rows& uniform,
                 const Drawn& drawn) noexcept {
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    const Part part = {row, static_cast<int>(std::min<std::int64_t>(kLanes, rows - row))};
    for (std::int64_t head = 0; head < actor.choices.count; ++head) {
      draw_choice(part, head, actor, outputs, uniform, drawn);
    }
    for (std::int64_t range = 0; range < actor.num_ranges; ++range) {
      draw_range(part, range, actor, outputs, uniform, drawn);
    }
  }
}

inline void choice_back(const Part& part, std::int64_t head, const Actor& actor,
                        const Judged& judged, float* to_outputs) noexcept {
  const auto [row, count] = part;
  const Heads& heads = actor.choices;
  const std::int64_t first = heads.bounds[head], options = heads.bounds[head + 1] - first;
  const std::int64_t apart = heads.count * heads.most, at = row * apart + head * heads.most;
  Lanes log_p[kMaxOptions], to[kMaxOptions], entropy = {}, by_entropy = {}, total = {};
  transpose(judged.log_probs + at, apart, options, count, log_p);
  for (int i = 0; i < count; ++i) {
    const std::int64_t here = (row + i) * actor.all + actor.choice_places[head];
    entropy[i] = judged.entropy[here];
    by_entropy[i] = judged.by_entropy != nullptr ? judged.by_entropy[here] : 0.0f;
  }
  if (judged.by_log_probs != nullptr) {
    transpose(judged.by_log_probs + at, apart, options, count, to);
  } else {
    std::fill(&to[0][0], &to[0][0] + options * kLanes, 0.0f);
  }
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) total[i] += to[k][i];
  }
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      const float p = exp_approx(log_p[k][i]);
      to[k][i] = (to[k][i] - p * total[i]) - by_entropy[i] * p * (log_p[k][i] + entropy[i]);
    }
  }
  const std::int64_t width = 2 * actor.num_ranges + heads.bounds[heads.count];
  transpose_back(to, options, count, to_outputs + row * width + 2 * actor.num_ranges + first, width);
}

inline void range_back(const Part& part, std::int64_t range, const Actor& actor,
                       const Rows& outputs, const Judged& judged, float* to_outputs) noexcept {
  const auto [row, count] = part;
  Lanes free = {}, unit = {}, far = {}, by_unit = {}, by_entropy = {}, to_mean, to_free;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = (row + i) * actor.all + actor.range_places[range];
    free[i] = outputs.at[(row + i) * outputs.apart + 2 * range + 1];
    unit[i] = judged.unit[at];
    far[i] = judged.spread[(row + i) * actor.num_ranges + range];
    by_unit[i] = judged.by_unit != nullptr ? judged.by_unit[at] : 0.0f;
    by_entropy[i] = judged.by_entropy != nullptr ? judged.by_entropy[at] : 0.0f;
  }
  for (int i = 0; i < kLanes; ++i) {
    // Along a draw the density's own slopes cancel out; what is left is that of the squashing.
    const float t = tanh_approx(free[i]);
    to_mean[i] = by_unit[i] * (1.0f - unit[i] * unit[i]) - by_entropy[i] * 2.0f * unit[i];
    to_free[i] = (to_mean[i] * far[i] + by_entropy[i]) * actor.half * (1.0f - t * t);
  }
  const std::int64_t width = 2 * actor.num_ranges + actor.choices.bounds[actor.choices.count];
  for (int i = 0; i < count; ++i) {
    float* mine = to_outputs + (row + i) * width + 2 * range;
    mine[0] = to_mean[i];
    mine[1] = to_free[i];
  }
}

inline void draw_back(std::int64_t rows, const Actor& actor, const Rows& outputs,
                      const Judged& judged, float* to_outputs) noexcept {
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    const Part part = {row, static_cast<int>(std::min<std::int64_t>(kLanes, rows - row))};
    for (std::int64_t head = 0; head < actor.choices.count; ++head) {
      choice_back(part, head, actor, judged, to_outputs);
    }
    for (std::int64_t range = 0; range < actor.num_ranges; ++range) {
      range_back(part, range, actor, outputs, judged, to_outputs);
    }
  }
}

// Where the largest of each head's numbers is; of equal ones the first.
inline void first_largest(std::int64_t options, const Lanes* x, Lanes& best) noexcept {
  Lanes high;
  for (int i = 0; i < kLanes; ++i) {
    high[i] = x[0][i];
    best[i] = 0.0f;
  }
  for (std::int64_t k = 1; k < options; ++k) {
    const auto option = static_cast<float>(k);
    for (int i = 0; i < kLanes; ++i) {
      const bool more = x[k][i] > high[i];
      high[i] = more ? x[k][i] : high[i];
      best[i] = more ? option : best[i];
    }
  }
}

inline void relax(std::int64_t rows, const Heads& heads, const Embedding& embedding,
                  const float* log_probs, const Rows& noise, float softness, const Rows& obs,
                  const Rows& action, float* soft, float* out) noexcept {
  const std::int64_t width = embedding.obs + embedding.size, apart = heads.count * heads.most;
  Lanes score[kMaxOptions], u[kMaxOptions], weight[kMaxOptions];
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, rows - row));
    for (int i = 0; i < count; ++i) {
      const float* from = obs.at + (row + i) * obs.apart;
      std::copy(from, from + embedding.obs, out + (row + i) * width);
    }
    float* shown = out + row * width + embedding.obs;
    for (std::int64_t head = 0; head < heads.count; ++head) {
      const std::int64_t options = heads.bounds[head + 1] - heads.bounds[head];
      const std::int64_t at = (row * heads.count + head) * heads.most;
      transpose(log_probs + at, apart, options, count, score);
      transpose(noise.at + row * noise.apart + head * heads.most, noise.apart, options, count, u);
      for (std::int64_t k = 0; k < options; ++k) {
        for (int i = 0; i < kLanes; ++i) {
          const float raised = u[k][i] > 1e-6f ? u[k][i] : 1e-6f;
          const float inside = raised < 1.0f - 1e-6f ? raised : 1.0f - 1e-6f;
          score[k][i] = (score[k][i] - log_approx(-log_approx(inside))) / softness;
        }
      }
      softmax(options, score, weight);
      Lanes best;
      first_largest(options, weight, best);
      transpose_back(weight, options, count, soft + at, apart);
      const std::int64_t place = embedding.column_of[embedding.choices[head]];
      if (embedding.match[place] >= 0.0f) {
        for (int i = 0; i < count; ++i) {
          float* mine = shown + i * width + place;
          for (std::int64_t k = 0; k < options; ++k) mine[k] = 0.0f;
          mine[static_cast<int>(best[i])] = 1.0f;
        }
      } else {
        const float scale = embedding.scale[place], shift = embedding.shift[place];
        for (int i = 0; i < count; ++i) shown[i * width + place] = best[i] * scale + shift;
      }
    }
    for (std::int64_t c = 0; c < embedding.ranges; ++c) {
      const std::int64_t head = embedding.numbers[c], place = embedding.column_of[head];
      for (int i = 0; i < count; ++i) {
        shown[i * width + place] = action.at[(row + i) * action.apart + head];
      }
    }
  }
}

inline void relax_back(std::int64_t rows, std::int64_t rows_each, const Heads& heads,
                       const Embedding& embedding, const float* grad, const float* soft,
                       float softness, float* to_log_probs, float* to_action) noexcept {
  const std::int64_t width = embedding.obs + embedding.size, apart = heads.count * heads.most;
  Lanes by[kMaxOptions], weight[kMaxOptions];
  for (std::int64_t row = 0; row < rows; row += kLanes) {
    const int count = static_cast<int>(std::min<std::int64_t>(kLanes, rows - row));
    const float* firsts[kLanes];  // what the first critic says of the embedding; then the second
    for (int i = 0; i < count; ++i) {
      const std::int64_t member = (row + i) / rows_each, own = (row + i) % rows_each;
      firsts[i] = grad + (2 * member * rows_each + own) * width + embedding.obs;
    }
    const std::int64_t second = rows_each * width;
    for (std::int64_t head = 0; head < heads.count; ++head) {
      const std::int64_t options = heads.bounds[head + 1] - heads.bounds[head];
      const std::int64_t at = (row * heads.count + head) * heads.most;
      const std::int64_t place = embedding.column_of[embedding.choices[head]];
      const bool hot = embedding.match[place] >= 0.0f;
      transpose(soft + at, apart, options, count, weight);
      Lanes inner = {};
      for (std::int64_t k = 0; k < options; ++k) {
        const std::int64_t column = hot ? place + k : place;
        const float factor = hot ? 1.0f : embedding.scale[place] * static_cast<float>(k);
        for (int i = 0; i < kLanes; ++i) by[k][i] = 0.0f;
        for (int i = 0; i < count; ++i) by[k][i] = firsts[i][column] + firsts[i][column + second];
        for (int i = 0; i < kLanes; ++i) {
          by[k][i] *= factor;
          inner[i] += by[k][i] * weight[k][i];
        }
      }
      for (std::int64_t k = 0; k < options; ++k) {
        for (int i = 0; i < kLanes; ++i) {
          by[k][i] = weight[k][i] * (by[k][i] - inner[i]) / softness;
        }
      }
      transpose_back(by, options, count, to_log_probs + at, apart);
      for (int i = 0; i < count; ++i) {
        float* mine = to_log_probs + at + i * apart;
        for (std::int64_t k = options; k < heads.most; ++k) mine[k] = 0.0f;
      }
    }
    if (to_action == nullptr) continue;
    for (int i = 0; i < count; ++i) {
      float* mine = to_action + (row + i) * embedding.heads;
      for (std::int64_t head = 0; head < embedding.heads; ++head) mine[head] = 0.0f;
      for (std::int64_t c = 0; c < embedding.ranges; ++c) {
        const std::int64_t head = embedding.numbers[c], column = embedding.column_of[head];
        mine[head] = firsts[i][column] + firsts[i][column + second];
      }
    }
  }
}

}  // namespace headwise::options::HEADWISE_ISA
