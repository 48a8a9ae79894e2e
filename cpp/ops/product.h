// Products of matrices, by a tile of registers and without packing: at these sizes a library is
// slower. Every element is one chain of fused multiply-adds along the inner dimension, so its bits
// depend neither on its tile nor on how many rows there are.
#pragma once

#include "ops/vec.h"

namespace headwise::ops {

// Rows of weights and of activations are padded to whole groups of sixteen.
constexpr int padded(int n) noexcept { return (n + kWide - 1) / kWide * kWide; }

// Rows of a tile: its accumulators, two registers a row, and what is loaded fit the registers.
#if defined(__AVX512F__)
constexpr int kTall = 8;
#else
constexpr int kTall = 6;
#endif

enum class Start { kZero, kBias, kAdd };

// What is multiplied: float32 numbers, or pairs of bfloat16 numbers side by side along the inner
// dimension, each pair in the bits of a float32.
enum class Numbers { kFloat32, kBf16Pairs };

// C (rows, columns) = A B, or the bias or C itself plus it. A's element (m, k) is at
// a[m * a_row + k * a_step]; B (inner, columns) has rows b_row apart; columns are whole groups.
struct Product {
  const float* a;
  std::int64_t a_row, a_step;
  const float* b;
  std::int64_t b_row;
  float* c;
  std::int64_t c_row;
  int rows, columns, inner;
  Start start = Start::kZero;
  const float* bias = nullptr;
};

// Both products of pairs added to a sum, where the build and the processor have the instruction. It
// is used nowhere but here and where numbers are packed, so one build serves both kinds of machine.
#if defined(__AVX512BF16__)
HEADWISE_INLINE Vec dot(Vec a, Vec b, Vec sum) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
inline bool has_bf16() { return __builtin_cpu_supports("avx512bf16") != 0; }
#else
HEADWISE_INLINE Vec dot(Vec, Vec, Vec sum) { return sum; }
inline bool has_bf16() { return false; }
#endif

template <int kRows, int kVecs, Numbers kNumbers>
inline void tile(const Product& x, const float* a, const float* b, float* c, const float* bias) {
  Vec sums[kRows][kVecs];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) {
      sums[i][j] = x.start == Start::kZero   ? Vec{}
                   : x.start == Start::kBias ? load_vec(bias + kLanes * j)
                                             : load_vec(c + i * x.c_row + kLanes * j);
    }
  }
  for (int k = 0; k < x.inner; ++k) {
    Vec row[kVecs];
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) row[j] = load_vec(b + k * x.b_row + kLanes * j);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Vec left = every(a + i * x.a_row + k * x.a_step);
#pragma GCC unroll 2
      for (int j = 0; j < kVecs; ++j) {
        if constexpr (kNumbers == Numbers::kFloat32) sums[i][j] = fma(left, row[j], sums[i][j]);
        if constexpr (kNumbers == Numbers::kBf16Pairs) sums[i][j] = dot(left, row[j], sums[i][j]);
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < kVecs; ++j) store_vec(c + i * x.c_row + kLanes * j, sums[i][j]);
  }
}

// The tiles of some columns, from `row` on; fewer rows than a tile has go by smaller ones.
template <Numbers kNumbers, int kRows, int kVecs>
inline void tiles(const Product& x, int row, int column) {
  for (; row + kRows <= x.rows; row += kRows) {
    tile<kRows, kVecs, kNumbers>(x, x.a + row * x.a_row, x.b + column, x.c + row * x.c_row + column,
                                 x.bias == nullptr ? nullptr : x.bias + column);
  }
  if constexpr (kRows > 1) {
    if (row < x.rows) tiles<kNumbers, kRows / 2, kVecs>(x, row, column);
  }
}

template <Numbers kNumbers = Numbers::kFloat32>
inline void multiply(const Product& x) {
  int column = 0;
  for (; column + 2 * kLanes <= x.columns; column += 2 * kLanes) {
    tiles<kNumbers, kTall, 2>(x, 0, column);
  }
  for (; column < x.columns; column += kLanes) tiles<kNumbers, kTall, 1>(x, 0, column);
}

// ---- transposes ----------------------------------------------------------------------------

// x (rows, columns), rows `pitch` apart -> y (padded columns, padded rows), with zeros beyond.
inline void transpose(const float* x, std::int64_t pitch, int rows, int columns, float* y) {
  const int wide = padded(rows), tall = padded(columns);
#if defined(__AVX512F__)
  using Row = float __attribute__((vector_size(64)));
  for (int c = 0; c < tall; c += kWide) {
    for (int r = 0; r < wide; r += kWide) {
      Row a[kWide], b[kWide];
#pragma GCC unroll 16
      for (int k = 0; k < kWide; ++k) {
        a[k] = r + k < rows ? Row(load_vec(x + (r + k) * pitch + c)) : Row{};
      }
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {  // halves of eight
        b[k] = __builtin_shufflevector(a[k], a[k + 8], 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20,
                                       21, 22, 23);
        b[k + 8] = __builtin_shufflevector(a[k], a[k + 8], 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26,
                                           27, 28, 29, 30, 31);
      }
#pragma GCC unroll 16
      for (int k = 0; k < kWide; ++k) {  // of four
        if ((k & 4) != 0) continue;
        a[k] = __builtin_shufflevector(b[k], b[k + 4], 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24,
                                       25, 26, 27);
        a[k + 4] = __builtin_shufflevector(b[k], b[k + 4], 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14,
                                           15, 28, 29, 30, 31);
      }
#pragma GCC unroll 16
      for (int k = 0; k < kWide; ++k) {  // of two
        if ((k & 2) != 0) continue;
        b[k] = __builtin_shufflevector(a[k], a[k + 2], 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12,
                                       13, 28, 29);
        b[k + 2] = __builtin_shufflevector(a[k], a[k + 2], 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26,
                                           27, 14, 15, 30, 31);
      }
#pragma GCC unroll 16
      for (int k = 0; k < kWide; ++k) {  // of one
        if ((k & 1) != 0) continue;
        a[k] = __builtin_shufflevector(b[k], b[k + 1], 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26,
                                       12, 28, 14, 30);
        a[k + 1] = __builtin_shufflevector(b[k], b[k + 1], 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11,
                                           27, 13, 29, 15, 31);
      }
#pragma GCC unroll 16
      for (int k = 0; k < kWide; ++k) store_vec(y + std::int64_t{c + k} * wide + r, Vec(a[k]));
    }
  }
#else
  for (int c = 0; c < tall; c += kWide) {
    for (int r = 0; r < wide; r += kWide) {
      for (int k = 0; k < kWide; ++k) {
        float* to = y + std::int64_t{c + k} * wide + r;
        const float* from = x + r * pitch + c + k;
        for (int i = 0; i < kWide; ++i) to[i] = r + i < rows ? from[i * pitch] : 0.0f;
      }
    }
  }
#endif
}

}  // namespace headwise::ops
