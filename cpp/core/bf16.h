// Layers whose products are of numbers rounded to bfloat16, summed in float32. On processors with
// AVX512-BF16 that is twice as fast as float32; elsewhere there is no such product.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/isa.h"
#include "core/tanh.h"

namespace headwise::bf16 {

using Word = std::uint32_t;  // two numbers, the first in the lower half
constexpr std::int64_t kTile = 8, kPanel = 32;
constexpr std::int64_t kNarrow = 16;  // fewer outputs are worked out in float32

enum class Then { kNone, kRelu, kTanh, kElu };

// Rows of float32, `pitch` numbers apart.
struct Matrix {
  const float* data;
  std::int64_t rows, columns, pitch;
};

// What goes back through a layer. Pointers that are null are not wanted. Gradients of parameters
// are added to what is there.
struct Backward {
  Matrix x, weight;
  const float *out, *grad;
  float *to_x, *to_weight, *to_bias;
  std::int64_t weight_pitch;  // of the gradient
};

// Words of a left operand: where tiles begin, and how far rows and words of a tile are apart.
struct Left {
  const Word* data;
  std::int64_t row, step, panel;

  [[nodiscard]] static Left rows(const Word* data, std::int64_t pitch) noexcept {
    return {data, pitch, 1, 0};
  }
  [[nodiscard]] static Left panels(const Word* data, std::int64_t words) noexcept {
    return {data, 1, kPanel, words * kPanel};
  }
  [[nodiscard]] std::int64_t place(std::int64_t r) const noexcept {
    return panel == 0 ? r * row : r / kPanel * panel + r % kPanel;
  }
};

[[nodiscard]] constexpr std::int64_t up(std::int64_t size, std::int64_t to) noexcept {
  return (size + to - 1) / to * to;
}
[[nodiscard]] constexpr std::int64_t row_words(std::int64_t columns) noexcept {
  return up(columns, kPanel) / 2;
}

// Memory that a thread keeps between products.
class Scratch {
 public:
  // Room for so many words, which begin at a line of the cache.
  [[nodiscard]] Word* take(std::size_t which, std::int64_t words) {
    std::vector<Line>& lines = lines_[which];
    const auto count = static_cast<std::size_t>(words / 16 + 1);
    if (lines.size() < count) lines.resize(count);
    return lines.data()->words;
  }

 private:
  struct alignas(64) Line {
    Word words[16];
  };
  std::vector<Line> lines_[3];
};

}  // namespace headwise::bf16

#if HEADWISE_MANY_ISAS
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "core/bf16_kernel.inl"
#include "core/narrow_kernel.inl"
#pragma GCC pop_options
#endif

namespace headwise {

// Whether this machine has the instruction, and the module was built for it.
[[nodiscard]] inline bool has_bf16() noexcept {
#if HEADWISE_MANY_ISAS
  return kIsa == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// out = then(x weight + bias), for one matrix. Only where has_bf16().
inline void bf16_forward([[maybe_unused]] const bf16::Matrix& x,
                         [[maybe_unused]] const bf16::Matrix& weight,
                         [[maybe_unused]] const float* bias, [[maybe_unused]] bf16::Then then,
                         [[maybe_unused]] float* out) {
#if HEADWISE_MANY_ISAS
  thread_local bf16::Scratch scratch;
  const bool narrow = weight.columns < bf16::kNarrow;
  (narrow ? bf16::avx512::narrow_forward : bf16::avx512::forward)(x, weight, bias, then, out,
                                                                  scratch);
#endif
}

// The way back. Only where has_bf16().
inline void bf16_backward([[maybe_unused]] const bf16::Backward& layer,
                          [[maybe_unused]] bf16::Then then) {
#if HEADWISE_MANY_ISAS
  thread_local bf16::Scratch scratch;
  const bool narrow = layer.weight.columns < bf16::kNarrow;
  (narrow ? bf16::avx512::narrow_backward : bf16::avx512::backward)(layer, then, scratch);
#endif
}

}  // namespace headwise
