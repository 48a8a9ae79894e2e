// Options of sixteen heads at a time, option by option, so that loops over the heads vectorise.
// Included by kernels, inside the namespace of their instruction set.
using Lanes = float[kLanes];

// Numbers of `count` heads, which lie `apart` from each other; what is beyond them is zero. A loop
// over all lanes has a bound that is known, so that the compiler unrolls it.
inline void transpose(const float* at, std::int64_t apart, std::int64_t options, int count,
                      Lanes* out) noexcept {
  for (std::int64_t k = 0; k < options; ++k, ++at) {
    if (count == kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) out[k][lane] = at[lane * apart];
    } else {
      for (int lane = 0; lane < kLanes; ++lane) out[k][lane] = lane < count ? at[lane * apart] : 0.0f;
    }
  }
}
inline void transpose_back(const Lanes* in, std::int64_t options, int count, float* at,
                           std::int64_t apart) noexcept {
  for (std::int64_t k = 0; k < options; ++k, ++at) {
    if (count == kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) at[lane * apart] = in[k][lane];
    } else {
      for (int lane = 0; lane < count; ++lane) at[lane * apart] = in[k][lane];
    }
  }
}

// The largest of each head's numbers.
inline void largest(std::int64_t options, const Lanes* x, Lanes& high) noexcept {
  for (int i = 0; i < kLanes; ++i) high[i] = x[0][i];
  for (std::int64_t k = 1; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) high[i] = x[k][i] > high[i] ? x[k][i] : high[i];
  }
}

// Exponentials of numbers that are at most zero, their sums, and the logarithms of those.
inline void exponentials(std::int64_t options, const Lanes* x, Lanes* e, Lanes& sum,
                         Lanes& log_sum) noexcept {
  for (int i = 0; i < kLanes; ++i) sum[i] = 0.0f;
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      e[k][i] = exp_approx(x[k][i]);
      sum[i] += e[k][i];
    }
  }
  // What is not a number stays so.
  for (int i = 0; i < kLanes; ++i) log_sum[i] = sum[i] == sum[i] ? log_approx(sum[i]) : sum[i];
}

// Logits to log-probabilities, in place, and probabilities.
inline void softmax(std::int64_t options, Lanes* x, Lanes* p) noexcept {
  Lanes high, sum, log_sum;
  largest(options, x, high);
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) x[k][i] -= high[i];
  }
  exponentials(options, x, p, sum, log_sum);
  for (std::int64_t k = 0; k < options; ++k) {
    for (int i = 0; i < kLanes; ++i) {
      x[k][i] -= log_sum[i];
      p[k][i] /= sum[i];
    }
  }
}
