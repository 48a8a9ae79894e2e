// Actions as learners give them: an option's number, or a range as a number from -1 to 1. Many rows
// are worked on at once, with as many copies of each head's bounds, so that the loops vectorize.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/isa.h"
#include "core/spec.h"

namespace headwise::units {

// How often tables of heads are repeated.
constexpr int kCopies = 16;

struct Tables {
  const float *low, *high;        // of what a learner may give
  const std::int32_t* is_option;  // 1 for a choice
  const float *bottom, *top;      // of what it means: the first option or lowest value, the highest
  std::size_t size;
};

// The value that a number from -1 to 1 stands for; rounding must not leave the range.
[[nodiscard]] inline float value_of(float unit, float low, float high) noexcept {
  const float value = low + (unit + 1.0f) * 0.5f * (high - low);
  const float raised = value > low ? value : low;
  return raised < high ? raised : high;
}

}  // namespace headwise::units

#define HEADWISE_KERNEL "core/units_kernel.inl"
#include "core/each_isa.inl"

namespace headwise {

// The heads of an environment as learners see them.
class Units {
 public:
  explicit Units(const std::vector<Head>& heads) {
    for (int copy = 0; copy < units::kCopies; ++copy) {
      for (const Head& head : heads) {
        low_.push_back(head.options > 0 ? 0.0f : -1.0f);
        high_.push_back(head.options > 0 ? static_cast<float>(head.options - 1) : 1.0f);
        is_option_.push_back(head.options > 0 ? 1 : 0);
        bottom_.push_back(head.options > 0 ? 0.0f : head.low);
        top_.push_back(head.high);
      }
    }
  }

  // Whether all of `count` numbers, row after row, are options that exist and units.
  [[nodiscard]] bool fit(const float* given, std::size_t count) const noexcept {
    return HEADWISE_DISPATCH(units, fit, tables(), given, count);
  }
  // What at most kCopies rows of them mean.
  void translate(const float* given, std::size_t count, float* values) const noexcept {
    HEADWISE_DISPATCH(units, translate, tables(), given, count, values);
  }
  // An action that is always possible: the first option or the lowest value of each head.
  [[nodiscard]] const float* idle() const noexcept { return bottom_.data(); }

 private:
  [[nodiscard]] units::Tables tables() const noexcept {
    return {low_.data(), high_.data(), is_option_.data(), bottom_.data(), top_.data(), low_.size()};
  }

  std::vector<float> low_, high_, bottom_, top_;
  std::vector<std::int32_t> is_option_;
};

}  // namespace headwise
