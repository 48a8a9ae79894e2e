// What operations read and write: numbers of members, with room for the gradient beside them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "ops/product.h"

namespace headwise::ops {

// A mistake of whoever calls; Python sees a ValueError.
struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// float32 numbers (members, copies, rows, columns); whole numbers lie in their bits where an
// operation says so. Views share the memory and keep it alive, so a view may be a temporary and
// what is recorded stays valid. What has one copy serves all copies of whoever reads it.
struct Buffer {
  std::shared_ptr<float[]> memory;
  float* values = nullptr;
  float* gradients = nullptr;  // laid out like the values; null where nothing is to be learned
  std::int64_t member = 0, copy = 0, pitch = 0;  // how far apart members, copies and rows are
  int members = 0, copies = 1, rows = 1, columns = 1;
  static constexpr double kMostNumbers = 0x1p38;  // a terabyte

  Buffer() = default;
  Buffer(int members_, int copies_, int rows_, int columns_, int pitch_, bool has_gradient)
      : copy(std::int64_t{rows_} * pitch_),
        pitch(pitch_),
        members(members_),
        copies(copies_),
        rows(rows_),
        columns(columns_) {
    if (members < 1 || copies < 1 || rows < 1 || columns < 0 || pitch < columns) {
      throw Fault("a buffer of " + std::to_string(members) + " x " + std::to_string(copies) +
                  " x " + std::to_string(rows) + " x " + std::to_string(columns) + " of " +
                  std::to_string(pitch) + " (members, copies, rows, columns of a row)");
    }
    if (double(members) * copies * rows * pitch > kMostNumbers) throw std::bad_alloc();
    member = (copy * copies + kWide - 1) / kWide * kWide;
    const std::int64_t size = member * members + kWide;  // whole groups are read at the end
    const std::int64_t total = has_gradient ? 2 * size : size;
    constexpr std::align_val_t kAligned{64};
    auto* raw = static_cast<float*>(operator new[](static_cast<std::size_t>(total) * sizeof(float),
                                                   kAligned));
    memory.reset(raw, [](float* p) { operator delete[](p, kAligned); });
    std::fill_n(raw, total, 0.0f);
    values = raw;
    if (has_gradient) gradients = raw + size;
  }

  explicit operator bool() const { return values != nullptr; }
  [[nodiscard]] std::int64_t offset(int p, int c) const {
    return p * member + (copies > 1 ? c * copy : 0);
  }
  [[nodiscard]] float* at(int p, int c = 0) const { return values + offset(p, c); }
  [[nodiscard]] float* row(int p, int c, int b) const { return at(p, c) + b * pitch; }
  [[nodiscard]] float* gradient(int p, int c = 0) const { return gradients + offset(p, c); }
  [[nodiscard]] float* gradient_row(int p, int c, int b) const {
    return gradient(p, c) + b * pitch;
  }
  [[nodiscard]] std::int32_t* ints(int p) const { return reinterpret_cast<std::int32_t*>(at(p)); }
  [[nodiscard]] std::int64_t* longs(int p) const { return reinterpret_cast<std::int64_t*>(at(p)); }

  // Views.
  [[nodiscard]] Buffer shifted(std::int64_t by) const {
    Buffer view = *this;
    view.values += by;
    if (gradients != nullptr) view.gradients += by;
    return view;
  }
  [[nodiscard]] Buffer columns_from(int start, int count) const {
    check(start, count, columns, "columns");
    Buffer view = shifted(start);
    view.columns = count;
    return view;
  }
  [[nodiscard]] Buffer rows_from(int start, int count) const {
    check(start, count, rows, "rows");
    Buffer view = shifted(start * pitch);
    view.rows = count;
    return view;
  }
  [[nodiscard]] Buffer copies_from(int start, int count) const {
    check(start, count, copies, "copies");
    Buffer view = shifted(start * copy);
    view.copies = count;
    return view;
  }
  [[nodiscard]] bool is(const Buffer& other) const {
    return values == other.values && rows == other.rows && columns == other.columns;
  }

 private:
  static void check(int start, int count, int size, const char* what) {
    if (start < 0 || count < 1 || count > size - start) {
      throw Fault("a view of " + std::to_string(count) + " " + what + " from " +
                  std::to_string(start) + ", of " + std::to_string(size));
    }
  }
};
using Buffers = std::vector<Buffer>;

// ---- what an operation asks of its arguments -----------------------------------------------

struct Sizes {
  int members, copies, rows, columns;
};
inline void check(const Buffer& x, const char* name, bool fits, Sizes s) {
  if (fits) return;
  const auto text = [](int m, int c, int r, int w) {
    return std::to_string(m) + " x " + std::to_string(c) + " x " + std::to_string(r) + " x " +
           std::to_string(w);
  };
  throw Fault(std::string(name) + " is " +
              (x ? text(x.members, x.copies, x.rows, x.columns) : "absent") + "; expected " +
              text(s.members, s.copies, s.rows, s.columns) + " (members, copies, rows, columns)");
}
// What is read: one copy, row or column serves all.
inline void expect(const Buffer& x, const char* name, Sizes s) {
  const auto serves = [](int own, int all) { return own == all || own == 1; };
  check(x, name,
        x && x.members == s.members && serves(x.copies, s.copies) && serves(x.rows, s.rows) &&
            serves(x.columns, s.columns),
        s);
}
inline void expect_if_given(const Buffer& x, const char* name, Sizes s) {
  if (x) expect(x, name, s);
}
// What is written, or read number by number.
inline void expect_all(const Buffer& x, const char* name, Sizes s) {
  check(
      x, name,
      x.members == s.members && x.copies == s.copies && x.rows == s.rows && x.columns == s.columns,
      s);
}
// The bits of an int64 for each member.
inline void expect_long(const Buffer& x, const char* name, int members) {
  check(x, name,
        x && x.members == members && x.columns == 2 &&
            reinterpret_cast<std::uintptr_t>(x.values) % sizeof(std::int64_t) == 0,
        {members, 1, 1, 2});
}
inline Sizes sizes_of(const Buffer& x) { return {x.members, x.copies, x.rows, x.columns}; }

// Room for numbers of sixteen rows that a thread keeps, so that a body need not ask for memory.
struct Room {
  std::vector<Wide> numbers;
  Wide* operator()(int count) {
    if (static_cast<int>(numbers.size()) < count) numbers.resize(count);
    return numbers.data();
  }
};

// Sixteen rows at a time, so that the text of a body reads as if for one: f(first row, how many).
template <class F>
HEADWISE_INLINE void each_rows(int rows, F&& f) {
  for (int b = 0; b < rows; b += kWide) f(b, std::min(kWide, rows - b));
}
// A number of each of n rows from b on. What has one row or one column serves all.
HEADWISE_INLINE Wide get(const Buffer& x, int p, int c, int b, int k, int n) {
  const float* from = x.at(p, c) + (x.columns > 1 ? k : 0);
  return x.rows > 1 ? column(from + b * x.pitch, x.pitch, n) : Wide(*from);
}
// The same of what may be absent.
HEADWISE_INLINE Wide get_or(float otherwise, const Buffer& x, int p, int c, int b, int k, int n) {
  return x ? get(x, p, c, b, k, n) : Wide(otherwise);
}
HEADWISE_INLINE void set(Wide y, const Buffer& x, int p, int c, int b, int k, int n) {
  put(y, x.row(p, c, b) + k, x.pitch, n);
}
// The gradient of what an operation wrote; none came back to where there is no room for it.
HEADWISE_INLINE Wide slope(const Buffer& x, int p, int c, int b, int k, int n) {
  if (x.gradients == nullptr) return 0.0f;
  return column(x.gradient_row(p, c, b) + k, x.pitch, n);
}
// Gives a gradient to what an operation read, where there is room for it.
HEADWISE_INLINE void give(Wide y, const Buffer& x, int p, int c, int b, int k, int n, bool add) {
  if (x.gradients == nullptr) return;
  float* to = x.gradient_row(p, c, b) + k;
  put(add ? column(to, x.pitch, n) + y : y, to, x.pitch, n);
}
// Zeros, where not every number gets a gradient.
inline void clear(const Buffer& x, int p) {
  if (x.gradients == nullptr) return;
  for (int c = 0; c < x.copies; ++c) {
    for (int b = 0; b < x.rows; ++b) std::fill_n(x.gradient_row(p, c, b), x.columns, 0.0f);
  }
}
// A setting of a member: the only number of it.
HEADWISE_INLINE float one(const Buffer& x, int p) { return *x.at(p); }

// Sums rows in sixteen running sums, and those in order: the same bits on every processor.
struct RowSum {
  Wide sums{0.0f};
  HEADWISE_INLINE void add(Wide x, int n) {
    if (n == kWide) {
      sums += x;
    } else {
      for (int k = 0; k < n; ++k) sums[k] += x[k];
    }
  }
  [[nodiscard]] float total() const { return sum(sums); }
};

}  // namespace headwise::ops
