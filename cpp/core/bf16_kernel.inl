// Products of matrices whose numbers are rounded to bfloat16, summed in float32; see core/bf16.h.
//
// The instruction works on words: two neighbours along the dimension that is summed over. One word
// of a row of the left operand meets 16 columns of the right one. So the left operand may have any
// layout from which words are read one by one, and the right one lies in panels of kPanel columns:
// (panel, word, kPanel). What is missing of a word, a tile or a panel is zero.
namespace headwise::bf16::avx512 {

constexpr __mmask16 kAll = 0xFFFF;

// Columns `from` to `from + 16` of a row that ends at `columns`; zeros beyond.
[[nodiscard]] inline __mmask16 lanes(std::int64_t from, std::int64_t columns) noexcept {
  const std::int64_t left = columns - from;
  return static_cast<__mmask16>(left >= 16 ? 0xFFFF : left <= 0 ? 0 : (1 << left) - 1);
}

// 32 numbers of a row as 16 words.
[[nodiscard]] inline __m512i along_row(__m512 first, __m512 second) noexcept {
  return std::bit_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
}

// 16 numbers of a row and those below them as 16 words.
[[nodiscard]] inline __m512i along_columns(__m512 upper, __m512 lower) noexcept {
  const __m512i count = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  const __m512i order = _mm512_or_epi32(
      count, _mm512_slli_epi32(_mm512_add_epi32(count, _mm512_set1_epi32(16)), 16));
  return _mm512_permutexvar_epi16(order, along_row(upper, lower));
}

// Rows with words along them, (rows, words), for the left operand.
inline void pack_rows(const Matrix& m, Word* to) noexcept {
  const std::int64_t pitch = row_words(m.columns);
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t c = 0; c < m.columns; c += kPanel) {
      const float* from = m.at(r, c);
      const __m512 first = _mm512_maskz_loadu_ps(lanes(c, m.columns), from);
      const __m512 second = _mm512_maskz_loadu_ps(lanes(c + 16, m.columns), from + 16);
      _mm512_store_si512(to + r * pitch + c / 2, along_row(first, second));
    }
  }
}

// Panels with words down the columns, where rows are summed over.
inline void pack_columns(const Matrix& m, Word* to) noexcept {
  for (std::int64_t c = 0; c < m.columns; c += kPanel) {
    const __mmask16 mask[2] = {lanes(c, m.columns), lanes(c + 16, m.columns)};
    for (std::int64_t r = 0; r < m.rows; r += 2, to += kPanel) {
      const float* from = m.at(r, c);
      for (int half = 0; half < 2; ++half) {
        const __m512 upper = _mm512_maskz_loadu_ps(mask[half], from + 16 * half);
        const __m512 lower = r + 1 < m.rows
                                 ? _mm512_maskz_loadu_ps(mask[half], m.at(r + 1, c) + 16 * half)
                                 : _mm512_setzero_ps();
        _mm512_store_si512(to + 16 * half, along_columns(upper, lower));
      }
    }
  }
}

// Exchanges rows and columns of 16 x 16 words: pairs of rows, then fours, then both halves.
using Ints = std::int32_t __attribute__((vector_size(64)));
inline void transpose(Ints (&x)[16]) noexcept {
  Ints y[16];
  for (int i = 0; i < 16; i += 2) {
    const Ints a = x[i], b = x[i + 1];
    y[i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
    y[i + 1] =
        __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      const Ints a = y[i + j], b = y[i + j + 2];
      x[i + 2 * j] =
          __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
      x[i + 2 * j + 1] =
          __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    }
  }
  // Quarter q of x[4 i + j] has column 4 q + j of rows 4 i to 4 i + 3.
  const auto even = [](Ints a, Ints b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  };
  const auto odd = [](Ints a, Ints b) {
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  };
  for (int j = 0; j < 4; ++j) {
    const Ints even01 = even(x[j], x[4 + j]), odd01 = odd(x[j], x[4 + j]);
    const Ints even23 = even(x[8 + j], x[12 + j]), odd23 = odd(x[8 + j], x[12 + j]);
    y[j] = even(even01, even23);
    y[4 + j] = even(odd01, odd23);
    y[8 + j] = odd(even01, even23);
    y[12 + j] = odd(odd01, odd23);
  }
  for (int i = 0; i < 16; ++i) x[i] = y[i];
}

// Panels of the transposed matrix, where its columns are summed over.
inline void pack_transposed(const Matrix& m, Word* to) noexcept {
  const std::int64_t words = (m.columns + 1) / 2;
  for (std::int64_t r = 0; r < m.rows; r += 16) {
    Word* panel = to + r / kPanel * words * kPanel + r % kPanel;
    for (std::int64_t c = 0; c < m.columns; c += 32) {
      Ints block[16] = {};
      for (int i = 0; i < 16 && r + i < m.rows; ++i) {
        const float* from = m.at(r + i, c);
        const __m512 first = _mm512_maskz_loadu_ps(lanes(c, m.columns), from);
        const __m512 second = _mm512_maskz_loadu_ps(lanes(c + 16, m.columns), from + 16);
        block[i] = std::bit_cast<Ints>(along_row(first, second));
      }
      transpose(block);
      const std::int64_t some = words - c / 2 < 16 ? words - c / 2 : 16;
      for (std::int64_t i = 0; i < some; ++i) {
        _mm512_store_si512(panel + (c / 2 + i) * kPanel, std::bit_cast<__m512i>(block[i]));
      }
    }
  }
  if (m.rows % kPanel != 0 && m.rows % kPanel <= 16) {  // the second half of the last panel
    Word* panel = to + m.rows / kPanel * words * kPanel + 16;
    for (std::int64_t i = 0; i < words; ++i) {
      _mm512_store_si512(panel + i * kPanel, _mm512_setzero_si512());
    }
  }
}

// Left times right: `finish` is told of each tile of kTile rows and kPanel columns of the product.
template <class Finish>
inline void multiply(const Left& left, const Word* right, std::int64_t words, std::int64_t rows,
                     std::int64_t columns, Finish&& finish) noexcept {
  for (std::int64_t c = 0; c < columns; c += kPanel, right += words * kPanel) {
    for (std::int64_t r = 0; r < rows; r += kTile) {
      const Word* a = left.data + left.place(r);
      const Word* b = right;
      __m512 sum[kTile][2];
      for (auto& row : sum) row[0] = row[1] = _mm512_setzero_ps();
      for (std::int64_t k = 0; k < words; ++k, a += left.step, b += kPanel) {
        const auto b0 = std::bit_cast<__m512bh>(_mm512_load_si512(b));
        const auto b1 = std::bit_cast<__m512bh>(_mm512_load_si512(b + 16));
#pragma GCC unroll 8
        for (int i = 0; i < kTile; ++i) {
          const auto word = std::bit_cast<__m512bh>(
              _mm512_set1_epi32(static_cast<std::int32_t>(a[i * left.row])));
          sum[i][0] = _mm512_dpbf16_ps(sum[i][0], word, b0);
          sum[i][1] = _mm512_dpbf16_ps(sum[i][1], word, b1);
        }
      }
      finish(r, c, sum);
    }
  }
}

// To 2e-7, as tanh_approx is; here products and sums may be fused, which halves the time.
[[nodiscard]] inline __m512 tanh(__m512 x) noexcept {
  const __m512 one = _mm512_set1_ps(1.0f), size = _mm512_abs_ps(x);
  const __m512 y = _mm512_mul_ps(_mm512_maskz_min_ps(kAll, _mm512_set1_ps(9.2f), size),
                                 _mm512_set1_ps(2.8853900818f));  // 2 |x| in powers of two
  const __m512 whole = _mm512_maskz_roundscale_ps(kAll, y, 0);
  const __m512 r = _mm512_mul_ps(_mm512_sub_ps(y, whole), _mm512_set1_ps(0.6931471806f));
  __m512 p = _mm512_set1_ps(1.3888889e-3f);
  for (const float term : {8.3333338e-3f, 4.1666668e-2f, 1.6666667e-1f, 0.5f, 1.0f, 1.0f}) {
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(term));
  }
  const __m512 power = _mm512_maskz_scalef_ps(kAll, p, whole);
  const __m512 t = _mm512_sub_ps(one, _mm512_div_ps(_mm512_set1_ps(2.0f), _mm512_add_ps(power, one)));
  return _mm512_or_ps(t, _mm512_and_ps(x, _mm512_set1_ps(-0.0f)));
}

[[nodiscard]] inline __m512 activated(__m512 x, Then then) noexcept {
  if (then == Then::kTanh) return tanh(x);
  return then == Then::kRelu ? _mm512_maskz_max_ps(kAll, _mm512_setzero_ps(), x) : x;
}

// The gradient before an activation, from the one behind it and what came out.
[[nodiscard]] inline __m512 before(__m512 grad, __m512 out, Then then) noexcept {
  const __m512 one = _mm512_set1_ps(1.0f), zero = _mm512_setzero_ps();
  if (then == Then::kTanh) return _mm512_mul_ps(grad, _mm512_sub_ps(one, _mm512_mul_ps(out, out)));
  if (then == Then::kElu) {
    return _mm512_mul_ps(grad, _mm512_add_ps(_mm512_maskz_min_ps(kAll, zero, out), one));
  }
  if (then == Then::kNone) return grad;
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(out, zero, _CMP_NLE_UQ), grad);
}

}  // namespace headwise::bf16::avx512
