// The loss of a policy over options, sixteen heads of rows at a time; see core/options_loss.h and
// core/isa.h.
namespace headwise::options_loss::HEADWISE_ISA {

#include "core/option_lanes.inl"

inline float total(const Lanes& lanes) noexcept {
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum;
}

inline void all(const Batch& batch, const Found& found) noexcept {
  const std::int64_t options = batch.options, heads = batch.heads, each = batch.rows * heads;
  const float one_row = 1.0f / static_cast<float>(batch.rows);
  Lanes log_p[kMaxOptions], p[kMaxOptions], q[kMaxOptions], to[kMaxOptions];
  for (std::int64_t member = 0; member < batch.members; ++member) {
    const float low = 1.0f - batch.clip[member], high = 1.0f + batch.clip[member];
    const float entropy_coef = batch.entropy_coef[member];
    const float kl_weight = batch.kl_coef[member] * one_row;
    Lanes surrogates = {}, entropies = {}, divergences = {};
    for (std::int64_t first = 0; first < each; first += kLanes) {
      const int count = static_cast<int>(std::min<std::int64_t>(kLanes, each - first));
      const std::int64_t at = member * each + first;
      transpose(batch.logits + at * options, options, options, count, log_p);
      softmax(options, log_p, p);

      Lanes share = {}, advantage = {}, taken = {}, before = {};
      for (int i = 0; i < count; ++i) {
        const std::int64_t head = (first + i) % heads;
        const std::int64_t row = member * batch.rows + (first + i) / heads;
        share[i] = batch.share[row];
        advantage[i] = batch.advantage[row * batch.advantages + (batch.advantages > 1 ? head : 0)];
        taken[i] = batch.taken[at + i];
        before[i] = batch.log_prob[at + i];
      }
      Lanes log_prob = {}, entropy = {}, ratio, slope;
      for (std::int64_t k = 0; k < options; ++k) {
        const auto option = static_cast<float>(k);
        for (int i = 0; i < kLanes; ++i) {
          log_prob[i] = taken[i] == option ? log_p[k][i] : log_prob[i];
          entropy[i] -= p[k][i] * log_p[k][i];
        }
      }
      for (int i = 0; i < kLanes; ++i) {
        const float log_ratio = log_prob[i] - before[i];
        const float r = exp_approx(log_ratio > kLargest ? kLargest : log_ratio);
        const float raised = r < low ? low : r;
        const float clipped = raised > high ? high : raised;
        const float free = r * advantage[i], held = clipped * advantage[i];
        // Written so that what is not a number stays so, and its member is found out.
        const float smaller = free > held ? held : free;
        const bool stops = (free > held) | (log_ratio > kLargest);
        slope[i] = stops ? 0.0f : free;
        ratio[i] = r;
        surrogates[i] += share[i] * smaller;
        entropies[i] += share[i] * entropy[i];
      }
      for (std::int64_t k = 0; k < options; ++k) {
        const auto option = static_cast<float>(k);
        for (int i = 0; i < kLanes; ++i) {
          const float hit = taken[i] == option ? 1.0f : 0.0f;
          const float by_entropy = p[k][i] * (log_p[k][i] + entropy[i]);
          to[k][i] = share[i] * (slope[i] * (p[k][i] - hit) + entropy_coef * by_entropy);
        }
      }
      if (batch.log_probs != nullptr) {
        transpose(batch.log_probs + at * options, options, options, count, q);
        Lanes sum = {};
        for (std::int64_t k = 0; k < options; ++k) {
          for (int i = 0; i < kLanes; ++i) {
            const float chance = i < count ? exp_approx(q[k][i]) : 0.0f;
            divergences[i] += chance * (q[k][i] - log_p[k][i]);
            sum[i] += chance;
            q[k][i] = chance;
          }
        }
        for (std::int64_t k = 0; k < options; ++k) {
          for (int i = 0; i < kLanes; ++i) to[k][i] += kl_weight * (p[k][i] * sum[i] - q[k][i]);
        }
      }
      transpose_back(log_p, options, count, found.log_probs + at * options, options);
      transpose_back(to, options, count, found.to_logits + at * options, options);
      for (int i = 0; i < count; ++i) {
        found.log_prob[at + i] = log_prob[i];
        found.ratio[at + i] = ratio[i];
      }
    }
    found.surrogate[member] = total(surrogates);
    found.entropy[member] = total(entropies);
    found.divergence[member] = total(divergences) * one_row;
    found.loss[member] = batch.kl_coef[member] * found.divergence[member] -
                         entropy_coef * found.entropy[member] - found.surrogate[member];
  }
}

}  // namespace headwise::options_loss::HEADWISE_ISA
