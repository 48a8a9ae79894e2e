// What Python sees of the kernels that learners call.
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.h"
#include "core/adam.h"
#include "core/fill.h"
#include "core/mixture.h"
#include "core/options_loss.h"
#include "core/replay.h"
#include "core/rng.h"
#include "core/spec.h"
#include "core/tanh.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

template <class A, class B>
bool same_shape(const A& a, const B& b) {
  return a.shape(0) == b.shape(0) && a.shape(1) == b.shape(1);
}

// The rows of a mixture, once their arrays are known to fit each other.
template <class Hidden>
MixtureRows mixture_rows(const Array<const float, -1, -1>& advantage,
                         const Array<const float, -1, -1>& first,
                         const Array<const float, -1, -1>& second, const Hidden& hidden) {
  const std::size_t rows = advantage.shape(0), heads = advantage.shape(1), width = second.shape(1);
  if (second.shape(0) != rows || !same_shape(hidden, second) || first.shape(0) != rows ||
      first.shape(1) != heads * width) {
    throw Fault("weights or hidden units do not fit the advantages.");
  }
  return {static_cast<std::int64_t>(rows),
          static_cast<std::int64_t>(heads),
          static_cast<std::int64_t>(width),
          advantage.data(),
          first.data(),
          second.data()};
}

}  // namespace

void bind_learners(nb::module_& m) {
  m.def(
      "best_isa",
      [] {
        return kIsa == Isa::kAvx512 ? "avx512" : kIsa == Isa::kAvx2 ? "avx2" : "baseline";
      },
      "The instruction set in use: the best that this machine has, or what HEADWISE_ISA asks for.");
  m.def("philox", &philox, "counter"_a, "key"_a,
        "Four random words: Philox4x32-10 of four counter words and a 64-bit key.");
  m.def(
      "normal_pair",
      [](std::uint32_t radius_word, std::uint32_t angle_word) {
        const NormalPair pair = normal_pair(radius_word, angle_word);
        return std::tuple(pair.first, pair.second);
      },
      "radius_word"_a, "angle_word"_a, "Two random words as two standard normal numbers.");

  m.def(
      "fill_uniforms",
      [](Array<float, -1, -1> out, Array<const std::uint64_t, -1> seeds, std::uint32_t stream,
         std::uint64_t step) {
        if (seeds.shape(0) != out.shape(0)) throw Fault("one row of numbers for each seed.");
        const auto size = static_cast<std::int64_t>(out.shape(1));
        for (std::size_t p = 0; p < out.shape(0); ++p) {
          fill_uniforms(out.data() + p * out.shape(1), size, seeds.data()[p], stream, step);
        }
      },
      "out"_a.noconvert(), "seeds"_a.noconvert(), "stream"_a, "step"_a,
      "Fills each row with numbers in [0, 1): a function of (seed, stream, step, index).");
  m.def(
      "tanh",
      [](Array<const float, -1> x, Array<float, -1> out) {
        if (x.shape(0) != out.shape(0)) throw Fault("arrays of unequal sizes.");
        const nb::gil_scoped_release release;
        tanh_all(x.data(), out.data(), static_cast<std::int64_t>(x.shape(0)));
      },
      "x"_a.noconvert(), "out"_a.noconvert(), "The hyperbolic tangent of each number, to 2e-7.");
  m.def(
      "mix",
      [](Array<const float, -1, -1> advantage, Array<const float, -1, -1> first,
         Array<const float, -1, -1> second, Array<float, -1, -1> hidden, Array<float, -1> mixed) {
        const MixtureRows rows = mixture_rows(advantage, first, second, hidden);
        if (mixed.shape(0) != advantage.shape(0)) throw Fault("one mixture for each row.");
        const nb::gil_scoped_release release;
        mix(rows, hidden.data(), mixed.data());
      },
      "advantage"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
      "hidden"_a.noconvert(), "mixed"_a.noconvert(),
      "The monotonic mixture of each row's advantages, and its hidden units.");
  m.def(
      "mix_backward",
      [](Array<const float, -1, -1> advantage, Array<const float, -1, -1> first,
         Array<const float, -1, -1> second, Array<const float, -1, -1> hidden,
         Array<const float, -1> grad, Array<float, -1, -1> to_advantage,
         Array<float, -1, -1> to_first, Array<float, -1, -1> to_second) {
        const MixtureRows rows = mixture_rows(advantage, first, second, hidden);
        if (grad.shape(0) != advantage.shape(0) || !same_shape(to_advantage, advantage) ||
            !same_shape(to_first, first) || !same_shape(to_second, second)) {
          throw Fault("gradients of other shapes than what they belong to.");
        }
        const nb::gil_scoped_release release;
        mix_backward(rows, hidden.data(), grad.data(), to_advantage.data(), to_first.data(),
                     to_second.data());
      },
      "advantage"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
      "hidden"_a.noconvert(), "grad"_a.noconvert(), "to_advantage"_a.noconvert(),
      "to_first"_a.noconvert(), "to_second"_a.noconvert(),
      "The gradients of mixtures by advantages and by both weights.");
  m.def(
      "mix_slope",
      [](Array<const float, -1, -1> advantage, Array<const float, -1, -1> first,
         Array<const float, -1, -1> second, Array<float, -1, -1> hidden,
         Array<float, -1, -1> slope) {
        const MixtureRows rows = mixture_rows(advantage, first, second, hidden);
        if (!same_shape(slope, advantage)) throw Fault("one slope for each advantage.");
        const nb::gil_scoped_release release;
        mix_slope(rows, hidden.data(), slope.data());
      },
      "advantage"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
      "hidden"_a.noconvert(), "slope"_a.noconvert(),
      "The slopes of mixtures by each advantage; overwrites the hidden units.");
  m.def(
      "options_loss",
      [](Array<const float, -1, -1, -1, -1> logits, Array<const float, -1, -1, -1> taken,
         Array<const float, -1, -1, -1> log_prob, Array<const float, -1, -1, -1> advantage,
         Array<const float, -1, -1> share,
         std::optional<Array<const float, -1, -1, -1, -1>> old_log_probs,
         Array<const float, 3, -1> coefficients, Array<float, -1, -1, -1, -1> log_probs,
         Array<float, 2, -1, -1, -1> by_head, Array<float, 4, -1> by_member,
         Array<float, -1, -1, -1, -1> to_logits) {
        const std::size_t members = logits.shape(0), rows = logits.shape(1);
        const std::size_t heads = logits.shape(2), options = logits.shape(3);
        const auto has = [](const auto& array, std::initializer_list<std::size_t> shape) {
          return std::equal(shape.begin(), shape.end(), array.shape_ptr());
        };
        const std::size_t columns = advantage.shape(2);
        if (!has(taken, {members, rows, heads}) || !has(log_prob, {members, rows, heads}) ||
            !has(advantage, {members, rows, columns}) || !has(share, {members, rows}) ||
            !has(coefficients, {3, members}) || !has(log_probs, {members, rows, heads, options}) ||
            !has(to_logits, {members, rows, heads, options}) ||
            !has(by_head, {2, members, rows, heads}) || !has(by_member, {4, members}) ||
            (old_log_probs && !has(*old_log_probs, {members, rows, heads, options})) ||
            (columns != 1 && columns != heads)) {
          throw Fault("arrays that do not fit the logits.");
        }
        if (options < 1 || options > options_loss::kMaxOptions) {
          throw Fault("a head must have 1 to " + std::to_string(options_loss::kMaxOptions) +
                      " options; got " + std::to_string(options) + ".");
        }
        const nb::gil_scoped_release release;
        options_loss_all(
            {static_cast<std::int64_t>(members), static_cast<std::int64_t>(rows),
             static_cast<std::int64_t>(heads), static_cast<std::int64_t>(options),
             static_cast<std::int64_t>(columns), logits.data(), taken.data(), log_prob.data(),
             advantage.data(), share.data(), old_log_probs ? old_log_probs->data() : nullptr,
             coefficients.data(), coefficients.data() + members, coefficients.data() + 2 * members},
            {log_probs.data(), by_head.data(), by_head.data() + members * rows * heads,
             by_member.data(), by_member.data() + members, by_member.data() + 2 * members,
             by_member.data() + 3 * members, to_logits.data()});
      },
      "logits"_a.noconvert(), "taken"_a.noconvert(), "log_prob"_a.noconvert(),
      "advantage"_a.noconvert(), "share"_a.noconvert(), "old_log_probs"_a.noconvert().none(),
      "coefficients"_a.noconvert(), "log_probs"_a.noconvert(), "by_head"_a.noconvert(),
      "by_member"_a.noconvert(), "to_logits"_a.noconvert(),
      "PPO's loss of a policy over options, and its gradient by the logits. The coefficients are "
      "the clip, and the weights of entropy and divergence; found are log-probabilities and ratios "
      "by head, and loss, surrogate, entropy and divergence by member.");
  m.def(
      "replay_draw",
      [](Array<const float, -1, -1, -1, -1> store, Array<const std::int64_t, -1, -1> next,
         Array<const std::int64_t, -1, -1> count, Array<const float, -1, -1, 2> uniform,
         Array<const float, -1> gamma, std::size_t terminated, Array<float, -1, -1, -1> drawn,
         Array<float, -1, -1> discount) {
        const std::size_t members = store.shape(0), rows = store.shape(1), slots = store.shape(2);
        const std::size_t width = store.shape(3), batch = uniform.shape(1);
        if (next.shape(0) != members || next.shape(1) != slots || !same_shape(count, next) ||
            uniform.shape(0) != members || gamma.shape(0) != members ||
            !same_shape(drawn, uniform) || drawn.shape(2) != width ||
            !same_shape(discount, uniform)) {
          throw Fault("arrays that do not fit the memory.");
        }
        if (rows == 0 || slots == 0 || terminated >= width) throw Fault("an empty memory.");
        for (std::size_t i = 0; i < members * slots; ++i) {
          const auto most = static_cast<std::int64_t>(rows);
          const std::int64_t n = next.data()[i], c = count.data()[i];
          if (n < 0 || n >= most || c < 0 || c > most) throw Fault("a cursor outside its ring.");
        }
        const nb::gil_scoped_release release;
        for (std::size_t p = 0; p < members; ++p) {
          draw({store.data() + p * rows * slots * width, next.data() + p * slots,
                count.data() + p * slots, static_cast<std::int64_t>(rows),
                static_cast<std::int64_t>(slots), static_cast<std::int64_t>(width)},
               uniform.data() + p * batch * 2, gamma.data()[p],
               static_cast<std::int64_t>(terminated), static_cast<std::int64_t>(batch),
               drawn.data() + p * batch * width, discount.data() + p * batch);
        }
      },
      "store"_a.noconvert(), "next"_a.noconvert(), "count"_a.noconvert(), "uniform"_a.noconvert(),
      "gamma"_a.noconvert(), "terminated"_a, "drawn"_a.noconvert(), "discount"_a.noconvert(),
      "Transitions drawn from each member's rings, and the discount of what follows.");
  m.def(
      "adam_step",
      [](Array<float, -1> value, Array<float, -1> grad, Array<float, -1> mean,
         Array<float, -1> square, Array<const std::int64_t, -1> offsets,
         Array<const std::int64_t, -1> sizes, Array<const float, -1> learning_rate,
         Array<bool, -1> alive, Array<float, -1> norm, std::int64_t count, float beta1, float beta2,
         float epsilon, float max_norm, std::optional<Array<float, -1>> target, float rate) {
        const std::size_t members = alive.shape(0);
        for (const auto& array : {grad, mean, square}) {
          if (array.shape(0) != value.shape(0)) throw Fault("tensors of unequal sizes.");
        }
        if (target && target->shape(0) != value.shape(0)) throw Fault("tensors of unequal sizes.");
        if (learning_rate.shape(0) != members || norm.shape(0) != members ||
            offsets.shape(0) != sizes.shape(0)) {
          throw Fault("one learning rate, norm and flag for each member, one size per offset.");
        }
        const auto total = static_cast<std::int64_t>(value.shape(0));
        for (std::size_t k = 0; k < sizes.shape(0); ++k) {
          const std::int64_t begin = offsets.data()[k], size = sizes.data()[k];
          // A quotient, because a product of what is given may be too large for a number.
          if (begin < 0 || size < 0 || begin > total ||
              (members > 0 && size > (total - begin) / static_cast<std::int64_t>(members))) {
            throw Fault("a parameter lies outside the tensor.");
          }
        }
        const nb::gil_scoped_release release;
        adam_step({static_cast<std::int64_t>(members), value.data(), grad.data(), mean.data(),
                   square.data(), norm.data(), learning_rate.data(), alive.data(),
                   target ? target->data() : nullptr, rate},
                  {offsets.data(), sizes.data(), static_cast<std::int64_t>(sizes.shape(0))}, count,
                  beta1, beta2, epsilon, max_norm);
      },
      "value"_a.noconvert(), "grad"_a.noconvert(), "mean"_a.noconvert(), "square"_a.noconvert(),
      "offsets"_a.noconvert(), "sizes"_a.noconvert(), "learning_rate"_a.noconvert(),
      "alive"_a.noconvert(), "norm"_a.noconvert(), "count"_a, "beta1"_a, "beta2"_a, "epsilon"_a,
      "max_norm"_a, "target"_a.noconvert().none(), "rate"_a,
      "One clipped Adam step of every member; dead members are left as they are. Gradients become "
      "zero, and a target moves a part of the way to the new values, `rate`.");
}

}  // namespace headwise
