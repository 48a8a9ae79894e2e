// Networks whose products are of numbers rounded to bfloat16, summed in float32. On processors with
// AVX512-BF16 that is twice as fast as float32; elsewhere there is no such product.
//
// A network is a trunk of layers, each of which reads all of the one before, and leaves that read
// columns of the last of them, or the inputs where there is no trunk. It is worked on from
// beginning to end by one thread, so what goes from layer to layer stays in that processor's own
// memory.
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

[[nodiscard]] constexpr std::int64_t up(std::int64_t size, std::int64_t to) noexcept {
  return (size + to - 1) / to * to;
}
[[nodiscard]] constexpr std::int64_t row_words(std::int64_t columns) noexcept {
  return up(columns, kPanel) / 2;
}

// Rows of float32, `pitch` numbers apart; kPanel columns are `panel` numbers from the next ones.
template <class T>
struct Rows {
  T* data;
  std::int64_t pitch, panel;

  // Those of a matrix of which nothing is known but where each row begins.
  [[nodiscard]] static Rows plain(T* data, std::int64_t pitch) noexcept {
    return {data, pitch, kPanel};
  }
  // Panels of columns one after the other, so that a tile of them is in one place.
  [[nodiscard]] static Rows panels(T* data, std::int64_t rows) noexcept {
    return {data, kPanel, rows * kPanel};
  }
  [[nodiscard]] T* at(std::int64_t r, std::int64_t c) const noexcept {
    return data + c / kPanel * panel + r * pitch + c % kPanel;
  }
};

struct Matrix {
  Rows<const float> numbers;
  std::int64_t rows, columns;

  [[nodiscard]] const float* at(std::int64_t r, std::int64_t c) const noexcept {
    return numbers.at(r, c);
  }
};

// Pointers that are null are not wanted. Gradients of parameters are added to what is there.
struct Layer {
  std::int64_t in, width;
  std::int64_t from;   // the column where what it reads begins, a multiple of kPanel
  std::int64_t pitch;  // of the weights and of their gradient
  Then then;
  const float *weight, *bias;
  Rows<float> out;    // what came out: a trunk's in panels, unless someone else wants it too
  Word* columns;      // what came out of a trunk's layer, for the gradient of the next weights
  const float* grad;  // of what came out of a leaf
  float *to_weight, *to_bias;

  [[nodiscard]] bool narrow() const noexcept { return width < kNarrow; }
  [[nodiscard]] Matrix weights() const noexcept {
    return {Rows<const float>::plain(weight, pitch), in, width};
  }
};

struct Network {
  Matrix x;
  float* to_x;
  std::vector<Layer> trunk, leaves;

  // What leaves read: columns from `from` on.
  [[nodiscard]] Matrix read_by(const Layer& leaf) const noexcept {
    if (trunk.empty()) return x;
    const Rows<float>& out = trunk.back().out;
    return {{out.at(0, leaf.from), out.pitch, out.panel}, x.rows, leaf.in};
  }
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

// Memory that a thread keeps between networks.
class Scratch {
 public:
  enum What { kRows, kOtherRows, kPanels, kOtherPanels, kWeights, kInputs, kOut, kParts };

  // Room for so many words, which begin at a line of the cache.
  [[nodiscard]] Word* take(int what, std::int64_t words) {
    std::vector<Line>& lines = lines_[what];
    const auto count = static_cast<std::size_t>(words / 16 + 1);
    if (lines.size() < count) lines.resize(count);
    return lines.data()->words;
  }
  [[nodiscard]] float* floats(int what, std::int64_t count) {
    return reinterpret_cast<float*>(take(what, count));
  }

 private:
  struct alignas(64) Line {
    Word words[16];
  };
  std::vector<Line> lines_[kParts];
};

[[nodiscard]] inline Scratch& scratch_of_this_thread() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace headwise::bf16

#if HEADWISE_MANY_ISAS
#include <immintrin.h>
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,avx512bf16,prefer-vector-width=512")
#include "core/bf16_kernel.inl"
#include "core/narrow_kernel.inl"
// In this order: a network is made of layers of both kinds.
#include "core/network_kernel.inl"
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

// Writes what comes out of each layer where that is wanted. Only where has_bf16().
inline void bf16_forward([[maybe_unused]] bf16::Network& network) {
#if HEADWISE_MANY_ISAS
  bf16::avx512::forward(network, bf16::scratch_of_this_thread());
#endif
}

// The way back. Only where has_bf16().
inline void bf16_backward([[maybe_unused]] const bf16::Network& network) {
#if HEADWISE_MANY_ISAS
  bf16::avx512::backward(network, bf16::scratch_of_this_thread());
#endif
}

}  // namespace headwise
