// A perceptron of every member: products, biases and activations, forward and back.
#pragma once

#include "ops/layer.h"
#include "ops/program.h"

namespace headwise::ops {

enum class Activation { kLinear, kTanh, kRelu, kElu };

// Runs of columns that a copy sees of an input: (first, count) each. A head of a chain sees the
// heads before it.
using Runs = std::vector<std::pair<int, int>>;

// `copies` perceptrons of each member with the same shape: heads, twins. The first layer has
// several inputs (leaves) side by side. A layer's weights are (inputs, padded outputs), row by row,
// and then its bias; layers follow one another, and so do copies.
class Network {
 public:
  static constexpr int kMostWidth = 1 << 24;
  Network(std::vector<int> leaves, std::vector<int> widths, std::vector<Activation> activations,
          int members, int rows, int copies, std::vector<std::vector<Runs>> sees)
      : leaves_(std::move(leaves)),
        widths_(std::move(widths)),
        activations_(std::move(activations)),
        members_(members),
        copies_(copies),
        sees_(std::move(sees)) {
    if (leaves_.empty() || widths_.empty() || widths_.size() != activations_.size()) {
      throw Fault("a network needs inputs, layers, and an activation for each layer");
    }
    for (const auto* sizes : {&leaves_, &widths_}) {
      for (const int size : *sizes) {
        if (size < 0 || size > kMostWidth) throw Fault("a network of such widths");
      }
    }
    if (members < 1 || rows < 1 || copies < 1) throw Fault("a network of members, rows and copies");
    if (sees_.empty()) {
      for (const int width : leaves_) {
        sees_.emplace_back(static_cast<std::size_t>(copies), Runs{{0, width}});
      }
    }
    if (sees_.size() != leaves_.size()) throw Fault("what copies see, for each input");
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      if (sees_[i].size() != static_cast<std::size_t>(copies)) {
        throw Fault("what each copy sees of an input");
      }
      for (const Runs& runs : sees_[i]) {
        for (const auto& [first, count] : runs) {
          if (first < 0 || count < 0 || count > leaves_[i] - first) {
            throw Fault("a copy sees columns that its input does not have");
          }
        }
      }
    }
    for (std::size_t l = 0; l < widths_.size(); ++l) {
      layer_at_.push_back(copy_size_);
      copy_size_ += (inputs(l) + 1) * std::int64_t{padded(widths_[l])};
      layers_.emplace_back(members, copies, rows, widths_[l], padded(widths_[l]), true);
    }
  }

  [[nodiscard]] std::int64_t size() const { return copy_size_ * copies_; }
  [[nodiscard]] std::int64_t copy_size() const { return copy_size_; }
  [[nodiscard]] const std::vector<std::int64_t>& layer_at() const { return layer_at_; }
  [[nodiscard]] Buffer layer(int l) const { return layers_.at(static_cast<std::size_t>(l)); }
  // Parameters (members, 1, 1, size) and their gradients.
  void place(const Buffer& parameters) {
    if (parameters.columns != size() || parameters.members != members_) {
      throw Fault("the parameters do not fit the network");
    }
    parameters_ = parameters;
  }

  // The copies named; all of them if none is.
  static std::vector<int> chosen(std::vector<int> some, int copies) {
    if (some.empty()) {
      for (int c = 0; c < copies; ++c) some.push_back(c);
    }
    for (const int c : some) {
      if (c < 0 || c >= copies) throw Fault("a copy that the network does not have");
    }
    return some;
  }
  // Of the last layer only the first `columns` outputs are worked out; 0 is all.
  // Factors are rounded to bfloat16 where that is asked for.
  static void forward(std::shared_ptr<Network> net, Buffers x, std::vector<int> copies, int columns,
                      bool rounds) {
    net->check(x);
    net->check(rounds);
    net->last_ = x;
    emit(net->members_,
         [net, x, columns, rounds, copies = chosen(std::move(copies), net->copies_)](int p) {
           for (const int c : copies) net->run(p, c, x, columns, rounds);
         });
  }
  // Gradients of parameters, unless they are held constant, and of the inputs that have room for
  // one: written by the first copy unless they are to be added to, added up over copies.
  static void backward(std::shared_ptr<Network> net, Buffers x, std::vector<int> copies,
                       bool weights, bool add, bool rounds) {
    net->check(x);
    net->check(rounds);
    if (weights && net->parameters_.gradients == nullptr) {
      throw Fault("parameters without room for a gradient");
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (net->last_.empty() || !x[i].is(net->last_[i])) {
        throw Fault("backward of other inputs than those of the last forward");
      }
    }
    emit(net->members_,
         [net, x, copies = chosen(std::move(copies), net->copies_), weights, add, rounds](int p) {
           for (std::size_t k = 0; k < copies.size(); ++k) {
             net->run_back(p, copies[k], x, weights, add || k > 0, add, rounds);
           }
         });
  }

 private:
  [[nodiscard]] int inputs(std::size_t l) const {
    if (l > 0) return widths_[l - 1];
    int total = 0;
    for (const int width : leaves_) total += width;
    return total;
  }
  void check(const Buffers& x) const {
    if (!parameters_) throw Fault("a network without parameters");
    if (x.size() != leaves_.size()) throw Fault("a network's inputs are not as many as its leaves");
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool fits = x[i].members == members_ && x[i].columns == leaves_[i] &&
                        (x[i].copies == 1 || x[i].copies == copies_) && x[i].rows == x[0].rows &&
                        x[i].rows <= layers_[0].rows;
      if (!fits) {
        throw Fault("input " + std::to_string(i) + " is " + std::to_string(x[i].members) +
                    " members, " + std::to_string(x[i].copies) + " copies, " +
                    std::to_string(x[i].rows) + " rows, " + std::to_string(x[i].columns) +
                    " columns; the network takes " + std::to_string(members_) + ", 1 or " +
                    std::to_string(copies_) + ", at most " + std::to_string(layers_[0].rows) +
                    " (all inputs as many), " + std::to_string(leaves_[i]));
      }
    }
  }
  static void check(bool rounds) {
    if (rounds && !has_bf16()) throw Fault("this processor has no products in bfloat16");
  }
  [[nodiscard]] std::int64_t parameter(int c, std::size_t l) const {
    return c * copy_size_ + layer_at_[l];
  }

  void run(int p, int c, const Buffers& x, int columns, bool rounds) const {
    const int rows = x[0].rows;
    for (std::size_t l = 0; l < widths_.size(); ++l) {
      const int width = padded(widths_[l]);
      const bool some = l + 1 == widths_.size() && columns > 0 && columns < widths_[l];
      const int wanted = some ? padded(columns) : width;
      const float* weights = parameters_.at(p) + parameter(c, l);
      const float* bias = weights + std::int64_t{inputs(l)} * width;
      float* out = layers_[l].at(p, c);
      if (l > 0) {
        const Buffer& in = layers_[l - 1];
        Layer(rows, inputs(l), widths_[l], rounds)
            .forward(in.at(p, c), in.pitch, weights, bias, Start::kBias, out, wanted);
      } else {
        Start start = Start::kBias;
        for (std::size_t i = 0; i < x.size(); ++i) {
          for (const auto& [first, count] : sees_[i][static_cast<std::size_t>(c)]) {
            Layer(rows, count, widths_[l], rounds)
                .forward(x[i].at(p, c) + first, x[i].pitch, weights + std::int64_t{first} * width,
                         bias, start, out, wanted);
            start = Start::kAdd;
          }
          weights += std::int64_t{leaves_[i]} * width;
        }
      }
      if (wanted == width) {
        activate(activations_[l], out, std::int64_t{rows} * width);
      } else {
        for (int b = 0; b < rows; ++b) {
          activate(activations_[l], out + std::int64_t{b} * width, wanted);
        }
      }
    }
  }

  void run_back(int p, int c, const Buffers& x, bool weights, bool add, bool add_always,
                bool rounds) const {
    static thread_local std::vector<float> spare[2];
    const int rows = x[0].rows;
    const Buffer& last = layers_.back();
    const float* slope = last.gradient(p, c);
    if (activations_.back() != Activation::kLinear) {
      const std::int64_t size = rows * last.pitch;
      float* own = room(spare[widths_.size() & 1], size);
      std::copy_n(slope, size, own);
      chain(activations_.back(), own, last.at(p, c), size);
      slope = own;
    }
    for (std::size_t l = widths_.size(); l-- > 0;) {
      const int width = padded(widths_[l]), wide = padded(inputs(l));
      const float* w = parameters_.at(p) + parameter(c, l);
      float* to = weights ? parameters_.gradient(p) + parameter(c, l) : nullptr;
      if (weights) bias_gradient(slope, rows, width, to + std::int64_t{inputs(l)} * width);
      if (l > 0) {
        const Buffer& in = layers_[l - 1];
        const Layer layer(rows, inputs(l), widths_[l], rounds);
        if (weights) layer.weight_gradient(in.at(p, c), in.pitch, slope, to);
        float* before = room(spare[l & 1], std::int64_t{rows} * wide);
        layer.input_gradient(slope, w, before);
        chain(activations_[l - 1], before, in.at(p, c), std::int64_t{rows} * wide);
        slope = before;
        continue;
      }
      for (std::size_t i = 0; i < x.size(); ++i) {
        for (const auto& [first, count] : sees_[i][static_cast<std::size_t>(c)]) {
          const std::int64_t at = std::int64_t{first} * width;
          if (weights) {
            Layer(rows, count, widths_[l], rounds)
                .weight_gradient(x[i].at(p, c) + first, x[i].pitch, slope, to + at);
          }
        }
        if (x[i].gradients != nullptr) {
          input_gradient(p, c, i, x[i], w, slope, x[i].copies == 1 ? add : add_always, rounds);
        }
        w += std::int64_t{leaves_[i]} * width;
        if (weights) to += std::int64_t{leaves_[i]} * width;
      }
    }
  }

  // What a copy does not see has no gradient of it. Inputs may be narrower than whole groups, so
  // they are worked out beside them.
  void input_gradient(int p, int c, std::size_t i, const Buffer& x, const float* w,
                      const float* slope, bool add, bool rounds) const {
    static thread_local std::vector<float> beside;
    const int width = padded(widths_[0]);
    float* to = x.gradient(p, c);
    if (!add) {
      for (int b = 0; b < x.rows; ++b) std::fill_n(to + b * x.pitch, x.columns, 0.0f);
    }
    for (const auto& [first, count] : sees_[i][static_cast<std::size_t>(c)]) {
      const int wide = padded(count);
      float* found = room(beside, std::int64_t{x.rows} * wide);
      Layer(x.rows, count, widths_[0], rounds)
          .input_gradient(slope, w + std::int64_t{first} * width, found);
      for (int b = 0; b < x.rows; ++b) {
        for (int k = 0; k < count; ++k) to[b * x.pitch + first + k] += found[b * wide + k];
      }
    }
  }

  static void bias_gradient(const float* slope, int rows, int width, float* to) {
    for (int k = 0; k < width; k += kWide) {
      Wide total(0.0f);
      for (int b = 0; b < rows; ++b) total += load(slope + std::int64_t{b} * width + k);
      store(to + k, total);
    }
  }
  static void activate(Activation kind, float* x, std::int64_t size) {
    if (kind == Activation::kTanh) {
      for (std::int64_t i = 0; i < size; i += kWide) store(x + i, tanh(load(x + i)));
    } else if (kind == Activation::kRelu) {
      for (std::int64_t i = 0; i < size; i += kWide) store(x + i, max(load(x + i), 0.0f));
    } else if (kind == Activation::kElu) {
      for (std::int64_t i = 0; i < size; i += kWide) {
        const Wide y = load(x + i);
        store(x + i, select(y > 0.0f, y, exp(y) - Wide(1.0f)));
      }
    }
  }
  // slope *= the activation's derivative, by what came out of it.
  static void chain(Activation kind, float* slope, const float* out, std::int64_t size) {
    if (kind == Activation::kTanh) {
      for (std::int64_t i = 0; i < size; i += kWide) {
        const Wide y = load(out + i);
        store(slope + i, load(slope + i) * (Wide(1.0f) - y * y));
      }
    } else if (kind == Activation::kRelu) {
      for (std::int64_t i = 0; i < size; i += kWide) {
        store(slope + i, select(load(out + i) <= 0.0f, 0.0f, load(slope + i)));
      }
    } else if (kind == Activation::kElu) {
      for (std::int64_t i = 0; i < size; i += kWide) {
        store(slope + i, load(slope + i) * (min(load(out + i), 0.0f) + Wide(1.0f)));
      }
    }
  }

  std::vector<int> leaves_, widths_;
  std::vector<Activation> activations_;
  int members_, copies_;
  std::vector<std::vector<Runs>> sees_;  // by input, then copy
  std::int64_t copy_size_ = 0;
  std::vector<std::int64_t> layer_at_;
  std::vector<Buffer> layers_;  // what came out of each layer; the last has the gradient given
  Buffer parameters_;
  Buffers last_;  // what the activations are of
};

}  // namespace headwise::ops
