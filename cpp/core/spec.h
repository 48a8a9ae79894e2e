// How an environment describes itself: its heads, its settings, the fields of its state. Each is
// written once, in the environment's header; Python reads names, types and help from here.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace headwise {

// A mistake of the caller: a setting, an action or a state that is not allowed.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One head of the action: `options` > 0 makes it a choice, otherwise it is a range. The bounds of a
// choice are those of the number that drives it in a continuous view. `levels` is how many
// different things a number can mean, where that is few; 0 where every number is another.
struct Head {
  std::string name;
  int options = 0;
  float low = -1.0f, high = 1.0f;
  int levels = 0;
};
inline Head choice(std::string name, int options, float low = -1.0f, float high = 1.0f) {
  return {std::move(name), options, low, high, options};
}
inline Head range(std::string name, float low, float high, int levels = 0) {
  return {std::move(name), 0, low, high, levels};
}

// The value that bin `b` of `n` stands for when both end points are bins.
[[nodiscard]] constexpr float bin_value(int b, int n, float low, float high) noexcept {
  return low + static_cast<float>(b) * ((high - low) / static_cast<float>(n - 1));
}

// The option that a number in [low, high] drives: `n` equal parts, the upper end in the last one.
[[nodiscard]] constexpr int driven_option(float x, int n, float low, float high) noexcept {
  const int b = static_cast<int>((x - low) / (high - low) * static_cast<float>(n));
  return b < n ? b : n - 1;
}

// How many of the first heads are discrete in a view; the word is one of kViews.
inline const std::vector<std::string> kViews = {"discrete", "hybrid", "continuous"};
[[nodiscard]] constexpr int num_discrete(int view, int num_heads, int in_hybrid) noexcept {
  return view == 0 ? num_heads : view == 1 ? in_hybrid : 0;
}

// An action of several native heads of which the first `discrete` are given as options and the
// others as numbers: what a learner sees of them, and the native values of what it chose.
struct ViewedHeads {
  std::vector<Head> native;
  int discrete = 0;
  int bins = 2;

  [[nodiscard]] std::vector<Head> heads() const {
    std::vector<Head> list;
    for (int h = 0; h < static_cast<int>(native.size()); ++h) {
      Head head = native[static_cast<std::size_t>(h)];
      if (h < discrete && head.options == 0) head.options = bins;
      if (h >= discrete) head.options = 0;
      list.push_back(std::move(head));
    }
    return list;
  }
  [[nodiscard]] float value(int h, const float* values) const {
    const Head& head = native[static_cast<std::size_t>(h)];
    const float x = values[h];
    if (h < discrete) {
      return head.options > 0 ? x : bin_value(static_cast<int>(x), bins, head.low, head.high);
    }
    return head.options > 0
               ? static_cast<float>(driven_option(x, head.options, head.low, head.high))
               : x;
  }
};

// A list of points in the plane, for layouts.
using Points = std::vector<std::array<float, 2>>;

// One of several words, held as its index.
struct Word {
  int value = 0;
  std::vector<std::string> allowed;
};

// A setting: where it lives in a Params, and how Python names and explains it.
struct Setting {
  std::string name;
  std::variant<bool*, int*, float*, double*, Word*, Points*> place;
  std::string help;
};

// All settings and their values in a line, by which two environments can be told apart.
[[nodiscard]] inline std::string text_of(const std::vector<Setting>& settings) {
  struct Visitor {
    std::string operator()(const Points* points) const {
      std::string text;
      for (const auto& [x, y] : *points) text += (*this)(&x) + "," + (*this)(&y) + " ";
      return text;
    }
    std::string operator()(const Word* word) const { return std::to_string(word->value); }
    std::string operator()(const float* number) const {  // all of its bits, not six digits
      return std::to_string(std::bit_cast<std::uint32_t>(*number));
    }
    std::string operator()(const double* number) const {
      return std::to_string(std::bit_cast<std::uint64_t>(*number));
    }
    std::string operator()(const int* number) const { return std::to_string(*number); }
    std::string operator()(const bool* flag) const { return *flag ? "1" : "0"; }
  };
  std::string text;
  for (const Setting& setting : settings) {
    text += setting.name + "=" + std::visit(Visitor{}, setting.place) + ";";
  }
  return text;
}

// A part of one slot's state, seen as an array of `shape` (rows, then columns; 0 means absent).
struct Field {
  std::string name;
  std::variant<float*, double*, std::int32_t*> data;
  int rows = 0, columns = 0;
  std::ptrdiff_t row_stride = 1, column_stride = 1;
};

}  // namespace headwise
