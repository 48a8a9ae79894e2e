// A network through all its layers and back; see core/bf16.h. What comes out of a layer is rounded
// and laid out for the products that follow while it is still in registers.
namespace headwise::bf16::avx512 {

using Tile = __m512[kTile][2];

// Whether a tile is all within a matrix, as most are.
[[nodiscard]] inline bool is_whole(std::int64_t r, std::int64_t c, std::int64_t rows,
                                   std::int64_t columns) noexcept {
  return r + kTile <= rows && c + kPanel <= columns;
}

// Numbers beyond the matrix become zero.
inline void clear_beyond(Tile& tile, std::int64_t r, std::int64_t c, std::int64_t rows,
                         std::int64_t columns) noexcept {
  for (int i = 0; i < kTile; ++i) {
    for (int half = 0; half < 2; ++half) {
      const __mmask16 mask = r + i < rows ? lanes(c + 16 * half, columns) : __mmask16{0};
      tile[i][half] = _mm512_maskz_mov_ps(mask, tile[i][half]);
    }
  }
}

// A tile as words, wherever they are wanted: along rows for a product that sums over columns, in
// panels for one that sums over rows. Both have room for whole tiles.
inline void write_words(const Tile& tile, std::int64_t r, std::int64_t c, std::int64_t count,
                        Word* rows, std::int64_t pitch, Word* panels) noexcept {
  if (rows != nullptr) {
    Word* to = rows + r * pitch + c / 2;
    for (int i = 0; i < kTile; ++i) {
      _mm512_store_si512(to + i * pitch, along_row(tile[i][0], tile[i][1]));
    }
  }
  if (panels == nullptr) return;
  Word* to = panels + c * ((count + 1) / 2) + r / 2 * kPanel;
  for (int i = 0; i < kTile && r + i < count; i += 2, to += kPanel) {
    _mm512_store_si512(to, along_columns(tile[i][0], tile[i + 1][0]));
    _mm512_store_si512(to + 16, along_columns(tile[i][1], tile[i + 1][1]));
  }
}

// The gradient before a layer's activation, as words for the products with it. It comes in tiles,
// row after row of kPanel columns; their sum over rows is the gradient of the bias.
class Slopes {
 public:
  Slopes(const Layer& layer, std::int64_t count, Word* rows, Word* panels) noexcept
      : layer_(&layer), count_(count), rows_(rows), panels_(panels) {}

  [[nodiscard]] const Word* rows() const noexcept { return rows_; }
  [[nodiscard]] const Word* panels() const noexcept { return panels_; }

  // From the gradient behind the activation, which is overwritten.
  void take(std::int64_t r, std::int64_t c, Tile& tile) noexcept {
    const std::int64_t width = layer_->width;
    if (layer_->then != Then::kNone) {
      const float* out = layer_->out.at(r, c);
      const __mmask16 mask[2] = {lanes(c, width), lanes(c + 16, width)};
      for (int i = 0; i < kTile && r + i < count_; ++i, out += layer_->out.pitch) {
        for (int half = 0; half < 2; ++half) {
          const __m512 some = _mm512_maskz_loadu_ps(mask[half], out + 16 * half);
          tile[i][half] = before(tile[i][half], some, layer_->then);
        }
      }
    }
    if (!is_whole(r, c, count_, width)) clear_beyond(tile, r, c, count_, width);
    if (layer_->to_bias != nullptr) add_bias(r, c, tile);
    write_words(tile, r, c, count_, rows_, row_words(width), panels_);
  }

  // All of it from rows of the gradient.
  void take_all(const float* grad) noexcept {
    for (std::int64_t c = 0; c < layer_->width; c += kPanel) {
      const __mmask16 mask[2] = {lanes(c, layer_->width), lanes(c + 16, layer_->width)};
      for (std::int64_t r = 0; r < count_; r += kTile) {
        Tile tile = {};
        for (int i = 0; i < kTile && r + i < count_; ++i) {
          const float* from = grad + (r + i) * layer_->width + c;
          tile[i][0] = _mm512_maskz_loadu_ps(mask[0], from);
          tile[i][1] = _mm512_maskz_loadu_ps(mask[1], from + 16);
        }
        take(r, c, tile);
      }
    }
  }

 private:
  void add_bias(std::int64_t r, std::int64_t c, const Tile& tile) noexcept {
    if (r == 0) sum_[0] = sum_[1] = _mm512_setzero_ps();
    for (int i = 0; i < kTile && r + i < count_; ++i) {
      sum_[0] = _mm512_add_ps(sum_[0], tile[i][0]);
      sum_[1] = _mm512_add_ps(sum_[1], tile[i][1]);
    }
    if (r + kTile < count_) return;
    for (int half = 0; half < 2; ++half) {
      const __mmask16 mask = lanes(c + 16 * half, layer_->width);
      float* to = layer_->to_bias + c + 16 * half;
      const __m512 there = _mm512_maskz_loadu_ps(mask, to);
      _mm512_mask_storeu_ps(to, mask, _mm512_add_ps(there, sum_[half]));
    }
  }

  const Layer* layer_;
  std::int64_t count_;
  Word *rows_, *panels_;
  __m512 sum_[2];
};

// What comes out of a layer, as words as well if they are wanted.
inline void wide_forward(const Left& left, std::int64_t count, const Layer& layer, Word* rows,
                         Scratch& scratch) {
  const std::int64_t words = (layer.in + 1) / 2, width = layer.width, pitch = row_words(width);
  Word* panels = scratch.take(Scratch::kWeights, up(width, kPanel) * words);
  pack_columns(layer.weights(), panels);
  multiply(left, panels, words, count, width, [&](std::int64_t r, std::int64_t c, Tile& tile) {
    const __mmask16 mask[2] = {lanes(c, width), lanes(c + 16, width)};
    const __m512 bias[2] = {_mm512_maskz_loadu_ps(mask[0], layer.bias + c),
                            _mm512_maskz_loadu_ps(mask[1], layer.bias + c + 16)};
    for (auto& row : tile) {
      row[0] = activated(_mm512_add_ps(row[0], bias[0]), layer.then);
      row[1] = activated(_mm512_add_ps(row[1], bias[1]), layer.then);
    }
    if (!is_whole(r, c, count, width)) clear_beyond(tile, r, c, count, width);
    if (layer.out.data != nullptr) {
      float* to = layer.out.at(r, c);
      for (int i = 0; i < kTile && r + i < count; ++i, to += layer.out.pitch) {
        _mm512_mask_storeu_ps(to, mask[0], tile[i][0]);
        _mm512_mask_storeu_ps(to + 16, mask[1], tile[i][1]);
      }
    }
    write_words(tile, r, c, count, rows, pitch, layer.columns);
  });
}

inline void forward(Network& net, Scratch& scratch) {
  const std::int64_t count = net.x.rows, tiles = up(count, kTile);
  std::int64_t pitch = row_words(net.x.columns);
  bool some_narrow = false, some_wide = false;
  for (const Layer& leaf : net.leaves) (leaf.narrow() ? some_narrow : some_wide) = true;
  Word* rows = scratch.take(Scratch::kRows, tiles * pitch);
  if (some_wide || !net.trunk.empty()) pack_rows(net.x, rows);
  for (Layer& layer : net.trunk) {
    const bool last = &layer == &net.trunk.back();
    if (last && some_narrow && layer.out.data == nullptr) {
      layer.out = Rows<float>::panels(
          scratch.floats(Scratch::kOut, up(layer.width, kPanel) * count), count);
    }
    const bool even = (&layer - net.trunk.data()) % 2 == 0;
    const std::int64_t next = row_words(layer.width);
    Word* to = scratch.take(even ? Scratch::kOtherRows : Scratch::kRows, tiles * next);
    wide_forward(Left::rows(rows, pitch), count, layer, last && !some_wide ? nullptr : to, scratch);
    rows = to;
    pitch = next;
  }
  for (const Layer& leaf : net.leaves) {
    if (leaf.narrow()) {
      narrow_forward(net.read_by(leaf), leaf, scratch);
    } else {
      wide_forward(Left::rows(rows + leaf.from / 2, pitch), count, leaf, nullptr, scratch);
    }
  }
}

// The gradient of a layer's weights, from what it read, `inputs`, as panels of words.
inline void add_weights(const Layer& layer, const Word* inputs, const Word* panels,
                        std::int64_t count) noexcept {
  const std::int64_t pairs = (count + 1) / 2, width = layer.width;
  const Left left = Left::panels(inputs, pairs);
  multiply(left, panels, pairs, layer.in, width, [&](std::int64_t r, std::int64_t c, Tile& tile) {
    const __mmask16 mask[2] = {lanes(c, width), lanes(c + 16, width)};
    for (int i = 0; i < kTile && r + i < layer.in; ++i) {
      float* to = layer.to_weight + (r + i) * layer.pitch + c;
      for (int half = 0; half < 2; ++half) {
        const __m512 there = _mm512_maskz_loadu_ps(mask[half], to + 16 * half);
        _mm512_mask_storeu_ps(to + 16 * half, mask[half], _mm512_add_ps(there, tile[i][half]));
      }
    }
  });
}

// `arrive` is told of tiles of the gradient of what a layer read.
template <class Arrive>
inline void wide_backward(const Layer& layer, const Word* rows, std::int64_t count,
                          Scratch& scratch, Arrive&& arrive) {
  const std::int64_t words = (layer.width + 1) / 2;
  Word* across = scratch.take(Scratch::kWeights, up(layer.in, kPanel) * words);
  pack_transposed(layer.weights(), across);
  multiply(Left::rows(rows, row_words(layer.width)), across, words, count, layer.in, arrive);
}

inline void backward(const Network& net, Scratch& scratch) {
  const std::int64_t count = net.x.rows, pairs = (count + 1) / 2;
  bool other = false;  // which half of the scratch: a layer is worked on while the next is filled
  const auto slopes_of = [&](const Layer& layer, bool need_rows) {
    const int rows = other ? Scratch::kOtherRows : Scratch::kRows;
    const int panels = other ? Scratch::kOtherPanels : Scratch::kPanels;
    const std::int64_t width = up(layer.width, kPanel);
    other = !other;
    return Slopes(layer, count,
                  need_rows ? scratch.take(rows, up(count, kTile) * width / 2) : nullptr,
                  layer.to_weight == nullptr ? nullptr : scratch.take(panels, width * pairs));
  };
  // Back through a layer that read columns of `below`, or the inputs.
  const auto pass = [&](const Layer& layer, const Slopes& slopes, const Layer* below, auto& arrive) {
    if (layer.to_weight != nullptr && below != nullptr) {
      add_weights(layer, below->columns + layer.from * pairs, slopes.panels(), count);
    } else if (layer.to_weight != nullptr) {
      Word* inputs = scratch.take(Scratch::kInputs, up(net.x.columns, kPanel) * pairs);
      pack_columns(net.x, inputs);
      add_weights(layer, inputs, slopes.panels(), count);
    }
    if (slopes.rows() != nullptr) wide_backward(layer, slopes.rows(), count, scratch, arrive);
  };
  const auto from_leaves = [&](const Layer* below, bool wanted, auto&& arrive) {
    for (const Layer& leaf : net.leaves) {
      const auto here = [&](std::int64_t r, std::int64_t c, Tile& tile) {
        arrive(r, c + leaf.from, tile);
      };
      if (leaf.narrow()) {
        narrow_backward(net.read_by(leaf), leaf, wanted, scratch, here);
        continue;
      }
      Slopes slopes = slopes_of(leaf, wanted);
      slopes.take_all(leaf.grad);
      pass(leaf, slopes, below, here);
      other = !other;  // what came out of all leaves is one layer
    }
  };
  const auto to_x = [&](std::int64_t r, std::int64_t c, Tile& tile) {
    const std::int64_t in = net.x.columns;
    const __mmask16 mask[2] = {lanes(c, in), lanes(c + 16, in)};
    for (int i = 0; i < kTile && r + i < count; ++i) {
      float* to = net.to_x + (r + i) * in + c;
      _mm512_mask_storeu_ps(to, mask[0], tile[i][0]);
      _mm512_mask_storeu_ps(to + 16, mask[1], tile[i][1]);
    }
  };

  const bool need_x = net.to_x != nullptr;
  if (net.trunk.empty()) {
    from_leaves(nullptr, need_x, to_x);
    return;
  }
  Slopes slopes = slopes_of(net.trunk.back(), net.trunk.size() > 1 || need_x);
  from_leaves(&net.trunk.back(), true, [&](std::int64_t r, std::int64_t c, Tile& tile) {
    slopes.take(r, c, tile);
  });
  for (std::size_t i = net.trunk.size() - 1; i > 0; --i) {
    const Layer& below = net.trunk[i - 1];
    Slopes next = slopes_of(below, i > 1 || need_x);
    const auto arrive = [&](std::int64_t r, std::int64_t c, Tile& tile) { next.take(r, c, tile); };
    pass(net.trunk[i], slopes, &below, arrive);
    slopes = next;
  }
  pass(net.trunk.front(), slopes, nullptr, to_x);
}

}  // namespace headwise::bf16::avx512
