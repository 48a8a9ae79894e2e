// What Python sees of the kernels that layers call.
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "bindings.h"
#include "core/bf16.h"
#include "core/crew.h"
#include "core/spec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

// Networks are told by addresses and sizes, because an array costs a few microseconds each, and a
// network has dozens. population/bf16_network.py, the only caller, takes them from tensors that it
// holds. Steps are how far a network's numbers are from those of the next one, in numbers.

// The inputs: address, rows, columns, how far rows are apart; then the networks of a member, the
// steps from member to member and from network to network.
using Inputs = std::array<std::int64_t, 7>;
// weight, bias, their steps; in, width, from, how far rows of weights are apart, activation;
// out, how far its rows and panels are apart, its step; columns, their step; grad, to_weight,
// to_bias. Addresses that are 0 are not wanted.
using Described = std::array<std::int64_t, 18>;

template <class T>
T* pointer(std::int64_t address, std::int64_t offset) {
  if (address == 0) return nullptr;
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address)) + offset;
}

bf16::Layer layer(const Described& d, std::int64_t rows, std::int64_t i) {
  return {.in = d[4],
          .width = d[5],
          .from = d[6],
          .pitch = d[7],
          .then = static_cast<bf16::Then>(d[8]),
          .weight = pointer<const float>(d[0], i * d[2]),
          .bias = pointer<const float>(d[1], i * d[3]),
          .out = {pointer<float>(d[9], i * d[12]), d[10], d[11]},
          .columns = pointer<bf16::Word>(d[13], i * d[14]),
          .grad = pointer<const float>(d[15], i * rows * d[5]),
          .to_weight = pointer<float>(d[16], i * d[2]),
          .to_bias = pointer<float>(d[17], i * d[3])};
}

class Networks {
 public:
  Networks(const Inputs& x, std::int64_t to_x, const std::vector<Described>& trunk,
           const std::vector<Described>& leaves)
      : x_(x), to_x_(to_x), trunk_(trunk), leaves_(leaves) {
    if (!has_bf16()) throw Fault("this machine has no products in bfloat16; see has_bf16.");
    if (x[1] < 0 || x[2] < 0 || x[4] < 1) throw Fault("no such inputs.");
    if (leaves.empty() || (trunk.empty() && leaves.size() > 1)) throw Fault("no such network.");
    std::int64_t width = x[2];
    for (const Described& d : trunk) {
      if (d[4] != width || d[6] != 0) throw Fault("layers that do not fit each other.");
      if (d[5] < bf16::kNarrow) throw Fault("a narrow layer can only be the last.");
      width = d[5];
    }
    std::int64_t next = 0;  // leaves read one column after the other, and all of them
    for (const Described& d : leaves) {
      if (d[4] < 0 || d[5] < 0 || d[6] != next || next % bf16::kPanel != 0) {
        throw Fault("layers that do not fit each other.");
      }
      next += d[4];
    }
    if (next != width) throw Fault("layers that do not fit each other.");
    for (const auto* part : {&trunk, &leaves}) {
      for (const Described& d : *part) {
        if (d[8] < 0 || d[8] > static_cast<std::int64_t>(bf16::Then::kElu)) {
          throw Fault("no such activation.");
        }
      }
    }
  }

  [[nodiscard]] bf16::Network operator[](std::int64_t i) const {
    const auto [address, rows, columns, pitch, copies, member, copy] = x_;
    const std::int64_t at = i / copies * member + i % copies * copy;
    bf16::Network net{
        .x = {bf16::Rows<const float>::plain(pointer<const float>(address, at), pitch), rows,
              columns},
        .to_x = pointer<float>(to_x_, i * rows * columns),
        .trunk = {},
        .leaves = {}};
    for (const Described& d : trunk_) net.trunk.push_back(layer(d, rows, i));
    for (const Described& d : leaves_) net.leaves.push_back(layer(d, rows, i));
    return net;
  }

 private:
  Inputs x_;
  std::int64_t to_x_;
  const std::vector<Described>&trunk_, &leaves_;
};

Crew& crew() {
  static Crew crew;
  return crew;
}

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("has_bf16", &has_bf16, "Whether this machine has products in bfloat16 (AVX512-BF16).");
  m.def(
      "bf16_forward",
      [](int count, const Inputs& x, const std::vector<Described>& trunk,
         const std::vector<Described>& leaves, int threads) {
        const Networks networks(x, 0, trunk, leaves);
        const nb::gil_scoped_release release;
        crew().each(count, threads, [&](int i) {
          bf16::Network network = networks[i];
          bf16_forward(network);
        });
      },
      "count"_a, "x"_a, "trunk"_a, "leaves"_a, "threads"_a,
      "So many networks at once, with products of numbers rounded to bfloat16. See "
      "headwise.population.bf16_network, which describes them.");
  m.def(
      "bf16_backward",
      [](int count, const Inputs& x, const std::vector<Described>& trunk,
         const std::vector<Described>& leaves, std::int64_t to_x, int threads) {
        const Networks networks(x, to_x, trunk, leaves);
        const nb::gil_scoped_release release;
        crew().each(count, threads, [&](int i) { bf16_backward(networks[i]); });
      },
      "count"_a, "x"_a, "trunk"_a, "leaves"_a, "to_x"_a, "threads"_a,
      "The way back through bf16_forward: overwrites the gradient of x, and adds to those of "
      "parameters.");
}

}  // namespace headwise
