// What Python sees of the kernels that layers call.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <limits>
#include <optional>
#include <string>

#include "bindings.h"
#include "core/bf16.h"
#include "core/crew.h"
#include "core/spec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

// A stack of matrices (N, rows, columns). Rows are contiguous, matrices and rows lie anywhere: a
// layer may be a part of a larger one, and an input some columns of what was drawn from memory.
template <class T>
using Stack = nb::ndarray<T, nb::ndim<3>, nb::device::cpu>;

template <class T>
void check_stack(const Stack<T>& stack, std::size_t copies, std::size_t rows, std::size_t columns) {
  if (stack.shape(0) != copies || stack.shape(1) != rows || stack.shape(2) != columns) {
    throw Fault("stacks of matrices that do not fit each other.");
  }
  if (columns > 1 && stack.stride(2) != 1) throw Fault("rows must be contiguous.");
}

template <class T>
bf16::Matrix matrix(const Stack<T>& stack, int i) {
  return {stack.data() + i * stack.stride(0), static_cast<std::int64_t>(stack.shape(1)),
          static_cast<std::int64_t>(stack.shape(2)), stack.stride(1)};
}

bf16::Then then_of(const std::optional<std::string>& name) {
  if (!name) return bf16::Then::kNone;
  if (*name == "relu") return bf16::Then::kRelu;
  if (*name == "tanh") return bf16::Then::kTanh;
  if (*name == "elu") return bf16::Then::kElu;
  throw Fault("an activation must be relu, tanh, elu or None; got '" + *name + "'.");
}

int count_of(std::size_t copies) {
  if (copies > std::numeric_limits<int>::max()) throw Fault("too many matrices.");
  if (!has_bf16()) throw Fault("this machine has no products in bfloat16; see has_bf16.");
  return static_cast<int>(copies);
}

Crew& crew() {
  static Crew crew;
  return crew;
}

}  // namespace

void bind_layers(nb::module_& m) {
  m.def("has_bf16", &has_bf16, "Whether this machine has products in bfloat16 (AVX512-BF16).");
  m.def(
      "bf16_forward",
      [](Stack<const float> x, Stack<const float> weight, Stack<const float> bias,
         Array<float, -1, -1, -1> out, const std::optional<std::string>& then, int threads) {
        const std::size_t copies = x.shape(0), rows = x.shape(1), in = x.shape(2);
        const std::size_t width = out.shape(2);
        check_stack(x, copies, rows, in);
        check_stack(weight, copies, in, width);
        check_stack(bias, copies, 1, width);
        if (out.shape(0) != copies || out.shape(1) != rows) throw Fault("one output for each row.");
        const bf16::Then kind = then_of(then);
        if (kind == bf16::Then::kElu) throw Fault("elu is not made here, only its slope.");
        const int count = count_of(copies);
        const nb::gil_scoped_release release;
        crew().each(count, threads, [&](int i) {
          bf16_forward(matrix(x, i), matrix(weight, i), bias.data() + i * bias.stride(0), kind,
                       out.data() + static_cast<std::size_t>(i) * rows * width);
        });
      },
      "x"_a.noconvert(), "weight"_a.noconvert(), "bias"_a.noconvert(), "out"_a.noconvert(),
      "then"_a.none(), "threads"_a,
      "x weight + bias and an activation, for each matrix of a stack, with products of numbers "
      "rounded to bfloat16.");
  m.def(
      "bf16_backward",
      [](Array<const float, -1, -1, -1> grad, Array<const float, -1, -1, -1> out,
         Stack<const float> x, Stack<const float> weight,
         std::optional<Array<float, -1, -1, -1>> to_x, std::optional<Stack<float>> to_weight,
         std::optional<Stack<float>> to_bias, const std::optional<std::string>& then, int threads) {
        const std::size_t copies = x.shape(0), rows = x.shape(1), in = x.shape(2);
        const std::size_t width = weight.shape(2);
        check_stack(x, copies, rows, in);
        check_stack(weight, copies, in, width);
        if (to_weight) check_stack(*to_weight, copies, in, width);
        if (to_bias) check_stack(*to_bias, copies, 1, width);
        for (const auto& array : {grad, out}) {
          if (array.shape(0) != copies || array.shape(1) != rows || array.shape(2) != width) {
            throw Fault("one gradient for each output.");
          }
        }
        if (to_x && (to_x->shape(0) != copies || to_x->shape(1) != rows || to_x->shape(2) != in)) {
          throw Fault("one gradient for each input.");
        }
        const bf16::Then kind = then_of(then);
        const int count = count_of(copies);
        const nb::gil_scoped_release release;
        crew().each(count, threads, [&](int i) {
          const auto at = static_cast<std::size_t>(i);
          bf16_backward(
              {matrix(x, i), matrix(weight, i), out.data() + at * rows * width,
               grad.data() + at * rows * width, to_x ? to_x->data() + at * rows * in : nullptr,
               to_weight ? to_weight->data() + i * to_weight->stride(0) : nullptr,
               to_bias ? to_bias->data() + i * to_bias->stride(0) : nullptr,
               to_weight ? to_weight->stride(1) : 0},
              kind);
        });
      },
      "grad"_a.noconvert(), "out"_a.noconvert(), "x"_a.noconvert(), "weight"_a.noconvert(),
      "to_x"_a.noconvert().none(), "to_weight"_a.noconvert().none(), "to_bias"_a.noconvert().none(),
      "then"_a.none(), "threads"_a,
      "The way back through bf16_forward: overwrites the gradient of x, and adds to those of "
      "weight "
      "and bias.");
}

}  // namespace headwise
