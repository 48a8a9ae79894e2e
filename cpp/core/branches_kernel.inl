// Soft values over options, one head of sixteen rows at a time; see core/branches.h and core/isa.h.
namespace headwise::branches::HEADWISE_ISA {

#include "core/option_lanes.inl"

// Advantages of some rows as (A - best A) / t.
inline void scaled(const float* at, std::int64_t width, std::int64_t options, int count, float t,
                   Lanes* x) noexcept {
  Lanes high;
  transpose(at, width, options, count, x);
  largest(options, x, high);
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) x[k][i] = (x[k][i] - high[i]) / t;
  }
}

inline void soft(const Heads& heads, const Critics& critics, const float* value, float* total,
                 float* entropy, std::int32_t* which) noexcept {
  const std::int64_t width = heads.bounds[heads.count], rows = critics.rows;
  Lanes x[kMaxOptions], e[kMaxOptions];
  for (std::int64_t member = 0; member < critics.members; ++member) {
    for (std::int64_t row = 0; row < rows; row += kLanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(kLanes, rows - row));
      Lanes worth[2] = {};
      for (int twin = 0; twin < 2; ++twin) {
        const std::int64_t from = (2 * member + twin) * rows + row;
        for (int i = 0; i < count; ++i) worth[twin][i] = value[from + i];
        for (std::int64_t head = 0; head < heads.count; ++head) {
          const std::int64_t first = heads.bounds[head], options = heads.bounds[head + 1] - first;
          const float t = critics.temperature[member * critics.all_heads + critics.choices[head]];
          Lanes sum, log_sum;
          scaled(critics.advantage + from * width + first, width, options, count, t, x);
          exponentials(options, x, e, sum, log_sum);
          for (int i = 0; i < kLanes; ++i) worth[twin][i] += t * log_sum[i];
          if (twin == 1) continue;
          Lanes mean = {};
          for (std::int64_t k = 0; k < options; ++k) {
            for (int i = 0; i < kLanes; ++i) mean[i] += e[k][i] * x[k][i];
          }
          float* out = entropy + (member * rows + row) * heads.count + head;
          for (int i = 0; i < count; ++i) out[i * heads.count] = log_sum[i] - mean[i] / sum[i];
        }
      }
      for (int i = 0; i < count; ++i) {
        const float a = worth[0][i], b = worth[1][i];
        const bool is_first = (a <= b) | (a != a);  // what is not a number is the lesser
        total[member * rows + row + i] = is_first ? a : b;
        which[member * rows + row + i] = is_first ? 0 : 1;
      }
    }
  }
}

inline void soft_back(const Heads& heads, const Critics& critics, const float* grad,
                      const std::int32_t* which, float* to_value, float* to_advantage) noexcept {
  const std::int64_t width = heads.bounds[heads.count], rows = critics.rows;
  Lanes x[kMaxOptions], e[kMaxOptions];
  for (std::int64_t member = 0; member < critics.members; ++member) {
    for (std::int64_t row = 0; row < rows; row += kLanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(kLanes, rows - row));
      for (int twin = 0; twin < 2; ++twin) {
        const std::int64_t from = (2 * member + twin) * rows + row;
        Lanes slope = {};
        for (int i = 0; i < count; ++i) {
          const std::int64_t at = member * rows + row + i;
          slope[i] = which[at] == twin ? grad[at] : 0.0f;
          to_value[from + i] = slope[i];
        }
        for (std::int64_t head = 0; head < heads.count; ++head) {
          const std::int64_t first = heads.bounds[head], options = heads.bounds[head + 1] - first;
          const float t = critics.temperature[member * critics.all_heads + critics.choices[head]];
          Lanes sum, log_sum, best = {};
          scaled(critics.advantage + from * width + first, width, options, count, t, x);
          exponentials(options, x, e, sum, log_sum);
          for (std::int64_t k = options - 1; k >= 0; --k) {
            const auto option = static_cast<float>(k);
            for (int i = 0; i < kLanes; ++i) best[i] = x[k][i] == 0.0f ? option : best[i];
          }
          for (std::int64_t k = 0; k < options; ++k) {
            const auto option = static_cast<float>(k);
            for (int i = 0; i < kLanes; ++i) {
              x[k][i] = slope[i] * (e[k][i] / sum[i] - (best[i] == option ? 1.0f : 0.0f));
            }
          }
          transpose_back(x, options, count, to_advantage + from * width + first, width);
        }
      }
    }
  }
}

}  // namespace headwise::branches::HEADWISE_ISA
