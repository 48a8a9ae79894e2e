// Layers with fewer than kNarrow outputs, such as values and a few options: all in float32, because
// rounding them would gain nothing. See core/bf16.h; rows of the transposed weights are worked on.
namespace headwise::bf16::avx512 {

// The transposed weights as rows of float32 in scratch, each with zeros behind it.
[[nodiscard]] inline float* pack_narrow(const Matrix& weight, Scratch& scratch) {
  const std::int64_t pitch = up(weight.rows, 16);
  auto* across = reinterpret_cast<float*>(scratch.take(1, weight.columns * pitch));
  for (std::int64_t o = 0; o < weight.columns; ++o) {
    for (std::int64_t i = 0; i < pitch; ++i) {
      across[o * pitch + i] = i < weight.rows ? weight.data[i * weight.pitch + o] : 0.0f;
    }
  }
  return across;
}

inline void narrow_forward(const Matrix& x, const Matrix& weight, const float* bias, Then then,
                           float* out, Scratch& scratch) {
  const std::int64_t pitch = up(x.columns, 16), width = weight.columns;
  const float* across = pack_narrow(weight, scratch);
  const __mmask16 all = static_cast<__mmask16>((1 << width) - 1);
  const __m512 shift = _mm512_maskz_loadu_ps(all, bias);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    const float* row = x.data + r * x.pitch;
    alignas(64) float found[16] = {};
    for (std::int64_t o = 0; o < width; ++o) {
      __m512 even = _mm512_setzero_ps(), odd = even;
      std::int64_t i = 0;
      for (; i + 32 <= x.columns; i += 32) {
        const float* w = across + o * pitch + i;
        even = _mm512_fmadd_ps(_mm512_loadu_ps(row + i), _mm512_load_ps(w), even);
        odd = _mm512_fmadd_ps(_mm512_loadu_ps(row + i + 16), _mm512_load_ps(w + 16), odd);
      }
      for (; i < x.columns; i += 16) {
        const __m512 some = _mm512_maskz_loadu_ps(lanes(i, x.columns), row + i);
        even = _mm512_fmadd_ps(some, _mm512_load_ps(across + o * pitch + i), even);
      }
      alignas(64) float sums[16];
      _mm512_store_ps(sums, _mm512_add_ps(even, odd));
      for (int half = 8; half > 0; half /= 2) {
        for (int i2 = 0; i2 < half; ++i2) sums[i2] += sums[i2 + half];
      }
      found[o] = sums[0];
    }
    const __m512 y = activated(_mm512_add_ps(_mm512_load_ps(found), shift), then);
    _mm512_mask_storeu_ps(out + r * width, all, y);
  }
}

inline void narrow_backward(const Backward& g, Then then, Scratch& scratch) {
  const std::int64_t count = g.x.rows, in = g.weight.rows, width = g.weight.columns;
  const std::int64_t pitch = up(in, 16);
  const __mmask16 all = static_cast<__mmask16>((1 << width) - 1);
  auto* slope = reinterpret_cast<float*>(scratch.take(0, count * 16));  // rows of 16
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t r = 0; r < count; ++r) {
    const __m512 grad = _mm512_maskz_loadu_ps(all, g.grad + r * width);
    const __m512 v = before(grad, _mm512_maskz_loadu_ps(all, g.out + r * width), then);
    _mm512_store_ps(slope + r * 16, v);
    sum = _mm512_add_ps(sum, v);
  }
  if (g.to_bias != nullptr) {
    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(all, g.to_bias), sum);
    _mm512_mask_storeu_ps(g.to_bias, all, sum);
  }
  if (g.to_x != nullptr) {
    const float* across = pack_narrow(g.weight, scratch);
    for (std::int64_t i = 0; i < in; i += 16) {
      const __mmask16 mask = lanes(i, in);
      for (std::int64_t r = 0; r < count; ++r) {
        __m512 total = _mm512_setzero_ps();
        for (std::int64_t o = 0; o < width; ++o) {
          const __m512 w = _mm512_load_ps(across + o * pitch + i);
          total = _mm512_fmadd_ps(_mm512_set1_ps(slope[r * 16 + o]), w, total);
        }
        _mm512_mask_storeu_ps(g.to_x + r * in + i, mask, total);
      }
    }
  }
  if (g.to_weight != nullptr) {
    for (std::int64_t i = 0; i < in; i += 16) {
      const __mmask16 mask = lanes(i, in);
      for (std::int64_t first = 0; first < width; first += 4) {  // so many sums stay in registers
        __m512 totals[4] = {};
        for (std::int64_t r = 0; r < count; ++r) {
          const __m512 some = _mm512_maskz_loadu_ps(mask, g.x.data + r * g.x.pitch + i);
          for (int k = 0; k < 4; ++k) {
            const __m512 s = _mm512_set1_ps(slope[r * 16 + first + k]);
            totals[k] = _mm512_fmadd_ps(s, some, totals[k]);
          }
        }
        for (std::int64_t o = first; o < width && o < first + 4; ++o) {
          alignas(64) float column[16];
          _mm512_store_ps(column, totals[o - first]);
          for (std::int64_t k = 0; k < 16 && i + k < in; ++k) {
            g.to_weight[(i + k) * g.weight_pitch + o] += column[k];
          }
        }
      }
    }
  }
}

}  // namespace headwise::bf16::avx512
