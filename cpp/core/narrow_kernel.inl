// Layers with fewer than kNarrow outputs, such as values and a few options: all in float32, because
// rounding them would gain nothing. See core/bf16.h; rows of the transposed weights are worked on.
namespace headwise::bf16::avx512 {

// The transposed weights as rows of float32 in scratch, each with zeros behind it.
[[nodiscard]] inline float* pack_narrow(const Matrix& weight, Scratch& scratch) {
  const std::int64_t pitch = up(weight.rows, kPanel);
  float* across = scratch.floats(Scratch::kWeights, weight.columns * pitch);
  for (std::int64_t o = 0; o < weight.columns; ++o) {
    for (std::int64_t i = 0; i < pitch; ++i) {
      across[o * pitch + i] = i < weight.rows ? weight.at(i, 0)[o] : 0.0f;
    }
  }
  return across;
}

inline void narrow_forward(const Matrix& x, const Layer& layer, Scratch& scratch) {
  const std::int64_t pitch = up(x.columns, kPanel), width = layer.width;
  const float* across = pack_narrow(layer.weights(), scratch);
  const __mmask16 all = static_cast<__mmask16>((1 << width) - 1);
  const __m512 shift = _mm512_maskz_loadu_ps(all, layer.bias);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    alignas(64) float found[16] = {};
    for (std::int64_t o = 0; o < width; ++o) {
      __m512 even = _mm512_setzero_ps(), odd = even;
      const float* w = across + o * pitch;
      std::int64_t i = 0;
      for (; i + 32 <= x.columns; i += 32) {
        const float* some = x.at(r, i);
        even = _mm512_fmadd_ps(_mm512_loadu_ps(some), _mm512_load_ps(w + i), even);
        odd = _mm512_fmadd_ps(_mm512_loadu_ps(some + 16), _mm512_load_ps(w + i + 16), odd);
      }
      for (; i < x.columns; i += 16) {
        const __m512 some = _mm512_maskz_loadu_ps(lanes(i, x.columns), x.at(r, i));
        even = _mm512_fmadd_ps(some, _mm512_load_ps(w + i), even);
      }
      alignas(64) float sums[16];
      _mm512_store_ps(sums, _mm512_add_ps(even, odd));
      for (int half = 8; half > 0; half /= 2) {
        for (int i2 = 0; i2 < half; ++i2) sums[i2] += sums[i2 + half];
      }
      found[o] = sums[0];
    }
    const __m512 y = activated(_mm512_add_ps(_mm512_load_ps(found), shift), layer.then);
    _mm512_mask_storeu_ps(layer.out.at(r, 0), all, y);
  }
}

// `arrive` is told of tiles of the gradient of x, as `finish` of `multiply` is, if it is wanted.
template <class Arrive>
inline void narrow_backward(const Matrix& x, const Layer& layer, bool need_x, Scratch& scratch,
                            Arrive&& arrive) {
  const std::int64_t count = x.rows, in = layer.in, width = layer.width, pitch = up(in, kPanel);
  const __mmask16 all = static_cast<__mmask16>((1 << width) - 1);
  float* slope = scratch.floats(Scratch::kInputs, up(count, kTile) * 16);  // rows of 16
  __m512 sum = _mm512_setzero_ps();
  for (std::int64_t r = 0; r < count; ++r) {
    const __m512 grad = _mm512_maskz_loadu_ps(all, layer.grad + r * width);
    const __m512 v = before(grad, _mm512_maskz_loadu_ps(all, layer.out.at(r, 0)), layer.then);
    _mm512_store_ps(slope + r * 16, v);
    sum = _mm512_add_ps(sum, v);
  }
  if (layer.to_bias != nullptr) {
    sum = _mm512_add_ps(_mm512_maskz_loadu_ps(all, layer.to_bias), sum);
    _mm512_mask_storeu_ps(layer.to_bias, all, sum);
  }
  if (need_x) {
    const float* across = pack_narrow(layer.weights(), scratch);
    for (std::int64_t c = 0; c < in; c += kPanel) {
      for (std::int64_t r = 0; r < count; r += kTile) {
        __m512 total[kTile][2];
        for (auto& row : total) row[0] = row[1] = _mm512_setzero_ps();
        for (std::int64_t o = 0; o < width; ++o) {
          const __m512 w0 = _mm512_load_ps(across + o * pitch + c);
          const __m512 w1 = _mm512_load_ps(across + o * pitch + c + 16);
#pragma GCC unroll 8
          for (int i = 0; i < kTile; ++i) {
            const __m512 s = _mm512_set1_ps(slope[(r + i) * 16 + o]);
            total[i][0] = _mm512_fmadd_ps(s, w0, total[i][0]);
            total[i][1] = _mm512_fmadd_ps(s, w1, total[i][1]);
          }
        }
        arrive(r, c, total);
      }
    }
  }
  if (layer.to_weight == nullptr) return;
  for (std::int64_t i = 0; i < in; i += 16) {
    const __mmask16 mask = lanes(i, in);
    for (std::int64_t first = 0; first < width; first += 4) {  // so many sums stay in registers
      __m512 totals[4] = {};
      for (std::int64_t r = 0; r < count; ++r) {
        const __m512 some = _mm512_maskz_loadu_ps(mask, x.at(r, i));
        for (int k = 0; k < 4; ++k) {
          const __m512 s = _mm512_set1_ps(slope[r * 16 + first + k]);
          totals[k] = _mm512_fmadd_ps(s, some, totals[k]);
        }
      }
      for (std::int64_t o = first; o < width && o < first + 4; ++o) {
        alignas(64) float column[16];
        _mm512_store_ps(column, totals[o - first]);
        for (std::int64_t k = 0; k < 16 && i + k < in; ++k) {
          layer.to_weight[(i + k) * layer.pitch + o] += column[k];
        }
      }
    }
  }
}

}  // namespace headwise::bf16::avx512
