// The three products of a linear layer, in float32 or with factors rounded to bfloat16 and summed
// in float32.
#pragma once

#include <vector>

#include "ops/product.h"

namespace headwise::ops {

// Room that a thread keeps; whole groups are read at the end.
inline float* room(std::vector<float>& space, std::int64_t size) {
  const auto needed = static_cast<std::size_t>(size + kWide);
  if (space.size() < needed) space.resize(needed);
  return space.data();
}

// Numbers rounded to the nearest, in pairs along a row: (rows, half as many columns, padded).
constexpr int pairs(int n) noexcept { return (n + 1) / 2; }
inline void pack_along(const float* x, std::int64_t pitch, int rows, int columns, float* to) {
#if defined(__AVX512BF16__)
  const int wide = padded(pairs(columns));
  const auto group = [](const float* from, int count) {
    const auto some = static_cast<__mmask16>(count >= 16 ? 0xFFFF
                                             : count > 0 ? (1 << count) - 1
                                                         : 0);
    return _mm512_maskz_loadu_ps(some, from);
  };
  for (int r = 0; r < rows; ++r, x += pitch, to += wide) {
    for (int k = 0; k < columns; k += 2 * kWide) {
      const __m512 low = group(x + k, columns - k),
                   high = group(x + k + kWide, columns - k - kWide);
      store_vec(to + k / 2, (Vec)_mm512_cvtne2ps_pbh(high, low));
    }
  }
#else
  static_cast<void>(x), static_cast<void>(pitch), static_cast<void>(rows);
  static_cast<void>(columns), static_cast<void>(to);
#endif
}
// In pairs of one row and the next: (half as many rows, padded columns).
inline void pack_across(const float* x, std::int64_t pitch, int rows, int columns, float* to) {
#if defined(__AVX512BF16__)
  alignas(64) std::uint16_t order[32];
  for (int k = 0; k < 32; ++k) order[k] = static_cast<std::uint16_t>(k / 2 + 16 * (k % 2));
  const __m512i in_turn = _mm512_load_si512(order);
  const int wide = padded(columns);
  for (int r = 0; r < rows; r += 2, x += 2 * pitch, to += wide) {
    for (int k = 0; k < columns; k += kWide) {
      const int count = columns - k;
      const auto some = static_cast<__mmask16>(count >= 16 ? 0xFFFF : (1 << count) - 1);
      const auto next = r + 1 < rows ? some : static_cast<__mmask16>(0);
      const __m512 low = _mm512_maskz_loadu_ps(some, x + k);
      const __m512 high = _mm512_maskz_loadu_ps(next, x + pitch + k);
      const auto both = (__m512i)_mm512_cvtne2ps_pbh(high, low);
      store_vec(to + k, (Vec)_mm512_permutexvar_epi16(in_turn, both));
    }
  }
#else
  static_cast<void>(x), static_cast<void>(pitch), static_cast<void>(rows);
  static_cast<void>(columns), static_cast<void>(to);
#endif
}

// A layer with weights (inputs, width), of which `rows` rows go through. Where it `rounds`,
// products of at least sixteen inputs and outputs have factors in bfloat16; there is nothing to
// gain in others, which are often observations and values.
class Layer {
 public:
  Layer(int rows, int inputs, int outputs, bool rounds)
      : rows_(rows),
        inputs_(inputs),
        outputs_(outputs),
        width_(padded(outputs)),
        rounds_(rounds && inputs >= kWide && outputs >= kWide) {}

  // The first `wanted` outputs, whole groups: bias + x W, or added to what is there.
  void forward(const float* x, std::int64_t pitch, const float* weights, const float* bias,
               Start start, float* out, int wanted) const {
    if (!rounds_) {
      multiply({x, pitch, 1, weights, width_, out, width_, rows_, wanted, inputs_, start, bias});
      return;
    }
    const int half = pairs(inputs_);
    float* left = room(space(0), std::int64_t{rows_} * padded(half));
    float* right = room(space(1), std::int64_t{half} * wanted);
    pack_along(x, pitch, rows_, inputs_, left);
    pack_across(weights, width_, inputs_, wanted, right);
    multiply<Numbers::kBf16Pairs>(
        {left, padded(half), 1, right, wanted, out, width_, rows_, wanted, half, start, bias});
  }
  // The gradient of the weights: x^T slope.
  void weight_gradient(const float* x, std::int64_t pitch, const float* slope, float* to) const {
    if (!rounds_) {
      multiply({x, 1, pitch, slope, width_, to, width_, inputs_, width_, rows_});
      return;
    }
    const int half = pairs(rows_), wide = padded(inputs_);
    float* left = room(space(0), std::int64_t{half} * wide);
    float* right = room(space(1), std::int64_t{half} * width_);
    pack_across(x, pitch, rows_, inputs_, left);
    pack_across(slope, width_, rows_, width_, right);
    multiply<Numbers::kBf16Pairs>(
        {left, 1, wide, right, width_, to, width_, inputs_, width_, half});
  }
  // The gradient of the inputs, (rows, padded inputs): slope W^T.
  void input_gradient(const float* slope, const float* weights, float* to) const {
    const int wide = padded(inputs_);
    if (!rounds_) {
      float* turned = room(space(0), std::int64_t{width_} * wide);
      transpose(weights, width_, inputs_, outputs_, turned);
      multiply({slope, width_, 1, turned, wide, to, wide, rows_, wide, outputs_});
      return;
    }
    const int half = pairs(outputs_), pitch = padded(half);
    float* left = room(space(0), std::int64_t{rows_} * pitch);
    float* packed = room(space(1), std::int64_t{inputs_} * pitch);
    float* turned = room(space(2), std::int64_t{pitch} * wide);
    pack_along(slope, width_, rows_, outputs_, left);
    pack_along(weights, width_, inputs_, outputs_, packed);
    transpose(packed, pitch, inputs_, half, turned);
    multiply<Numbers::kBf16Pairs>({left, pitch, 1, turned, wide, to, wide, rows_, wide, half});
  }

 private:
  static std::vector<float>& space(int k) {
    static thread_local std::vector<float> spaces[3];
    return spaces[k];
  }

  int rows_, inputs_, outputs_, width_;
  bool rounds_;
};

}  // namespace headwise::ops
