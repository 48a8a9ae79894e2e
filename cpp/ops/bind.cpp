// What Python sees of the operations. The same file is built once for each instruction set, as a
// module of its own; headwise/ops/core.py takes the best that the machine runs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "ops/action_input.h"
#include "ops/adam.h"
#include "ops/collect.h"
#include "ops/mixture.h"
#include "ops/network.h"
#include "ops/policy_loss.h"
#include "ops/returns.h"
#include "ops/rows.h"
#include "ops/sample.h"
#include "ops/schedules.h"
#include "ops/soft.h"
#include "ops/values.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise::ops {
namespace {

using Array = nb::ndarray<nb::numpy, float, nb::ndim<4>>;
using Maybe = std::optional<Buffer>;

Buffer given(const Maybe& x) { return x ? *x : Buffer(); }

// A view of the numbers, or of the gradients, that keeps the memory alive.
Array array_of(const Buffer& x, float* data) {
  auto* memory = new std::shared_ptr<float[]>(x.memory);
  const nb::capsule owner(
      memory, [](void* p) noexcept { delete static_cast<std::shared_ptr<float[]>*>(p); });
  const auto size = [](int n) { return static_cast<std::size_t>(n); };
  const std::size_t shape[] = {size(x.members), size(x.copies), size(x.rows), size(x.columns)};
  const std::int64_t strides[] = {x.member, x.copy, x.pitch, 1};
  return Array(data, 4, shape, owner, strides);
}

// An array whose members are runs of bytes, each of one row, or of many along the second axis.
template <class A>
Place place_of(const A& x, bool many) {
  const std::size_t axis = many ? 2 : 1;
  if (x.ndim() < axis) throw Fault("an array without an axis of members, or of rows");
  Place place;
  place.size = static_cast<std::int64_t>(x.itemsize());
  std::int64_t numbers = 1;
  for (std::size_t d = x.ndim(); d-- > 1;) {
    const auto count = static_cast<std::int64_t>(x.shape(d));
    if (count > 1 && x.stride(d) != numbers) throw Fault("an array with gaps within a member");
    numbers *= count;
    (d >= axis ? place.size : place.rows) *= count;
  }
  place.members = static_cast<int>(x.shape(0));
  place.member =
      (place.members > 1 ? x.stride(0) : numbers) * static_cast<std::int64_t>(x.itemsize());
  place.data = reinterpret_cast<std::byte*>(x.data());
  place.owner = std::make_shared<A>(x);
  return place;
}

void bind_collecting(nb::module_& m) {
  m.def(
      "write_rows",
      [](const std::vector<nb::ndarray<>>& from, const std::vector<nb::ndarray<>>& to,
         const Maybe& cursor) {
        std::vector<Place> sources, places;
        for (const auto& x : from) sources.push_back(place_of(x, false));
        for (const auto& x : to) places.push_back(place_of(x, cursor.has_value()));
        write_rows(sources, places, given(cursor));
      },
      "from"_a, "to"_a, "cursor"_a.none());
  m.def(
      "to_heads",
      [](const Buffer& unit, const nb::ndarray<float>& action, const nb::ndarray<float>& heads,
         const std::vector<int>& source, const Maybe& joint, const Maybe& units,
         const std::vector<int>& counts) {
        to_heads(unit, place_of(action, false), place_of(heads, false), source, given(joint),
                 given(units), counts);
      },
      "unit"_a, "action"_a.noconvert(), "heads"_a.noconvert(), "source"_a, "joint"_a.none(),
      "units"_a.none(), "counts"_a);
  m.def(
      "step_env",
      [](const nb::capsule& port, const nb::ndarray<float>& heads) {
        const auto* known = static_cast<const EnvPort*>(port.data(EnvPort::kName));
        step_env(std::make_shared<nb::capsule>(port), *known, place_of(heads, false));
      },
      "port"_a, "heads"_a.noconvert());
  m.def("time_passes", &time_passes, "watch"_a, "stops"_a);
}

void bind_structures(nb::module_& m) {
  nb::class_<Buffer>(m, "Buffer")
      .def(nb::init<int, int, int, int, int, bool>(), "members"_a, "copies"_a, "rows"_a,
           "columns"_a, "pitch"_a, "gradient"_a)
      .def("array", [](const Buffer& x) { return array_of(x, x.values); })
      .def("gradient_array",
           [](const Buffer& x) -> std::optional<Array> {
             if (x.gradients == nullptr) return std::nullopt;
             return array_of(x, x.gradients);
           })
      .def("gradient_view",
           [](const Buffer& x) {
             if (x.gradients == nullptr) throw Fault("a buffer without a gradient");
             Buffer view = x;
             view.values = x.gradients;
             view.gradients = nullptr;
             return view;
           })
      .def("columns_from", &Buffer::columns_from, "start"_a, "count"_a)
      .def("rows_from", &Buffer::rows_from, "start"_a, "count"_a)
      .def("copies_from", &Buffer::copies_from, "start"_a, "count"_a);

  nb::class_<Program>(m, "Program")
      .def(nb::init<>())
      .def("__len__", &Program::size)
      .def(
          "__enter__",
          [](Program& program) -> Program& {
            if (recording != nullptr) throw Fault("another program is recording");
            recording = &program;
            return program;
          },
          nb::rv_policy::reference)
      .def("__exit__", [](Program&, const nb::args&) { recording = nullptr; })
      .def(
          "run",
          [](Program& program, int times, int threads) {
            if (recording == &program) throw Fault("a program that is recording cannot run");
            if (program.has_python()) {
              program.run(times, threads);
            } else {
              const nb::gil_scoped_release release;
              program.run(times, threads);
            }
          },
          "times"_a, "threads"_a)
      .def(
          "run_member",
          [](Program& program, int member) {
            if (recording == &program) throw Fault("a program that is recording cannot run");
            program.run_member(member);
          },
          "member"_a);
  m.def("emit_python", [](nb::callable step) {
    if (recording != nullptr) recording->add({0, nullptr, [step] { step(); }, true});
  });

  nb::class_<HeadTable>(m, "HeadTable")
      .def(nb::init<const std::vector<int>&, std::vector<int>, const std::vector<int>&,
                    const std::vector<float>&, const std::vector<float>&, const std::vector<int>&,
                    const std::vector<int>&, int, bool, bool, float, float>());
  nb::class_<Embedding>(m, "Embedding")
      .def("__init__",
           [](Embedding* e, std::vector<int> heads, std::vector<int> values,
              std::vector<float> scales, std::vector<float> shifts, const HeadTable& table) {
             new (e) Embedding{std::move(heads), std::move(values), std::move(scales),
                               std::move(shifts), table};
           });
  nb::class_<Queries>(m, "Queries")
      .def("__init__", [](Queries* q, std::vector<int> rows, std::vector<int> heads,
                          std::vector<int> options, std::vector<int> columns, float stands_for) {
        new (q) Queries{std::move(rows), std::move(heads), std::move(options), std::move(columns),
                        stands_for};
      });
}

void bind_network(nb::module_& m) {
  nb::class_<Network>(m, "Network")
      .def_static(
          "make",
          [](std::vector<int> leaves, std::vector<int> widths, const std::vector<int>& activations,
             int members, int rows, int copies, std::vector<std::vector<Runs>> sees) {
            std::vector<Activation> kinds;
            for (const int kind : activations) kinds.push_back(static_cast<Activation>(kind));
            return std::make_shared<Network>(std::move(leaves), std::move(widths), std::move(kinds),
                                             members, rows, copies, std::move(sees));
          },
          "leaves"_a, "widths"_a, "activations"_a, "members"_a, "rows"_a, "copies"_a, "sees"_a)
      .def("layer", &Network::layer)
      .def("place", &Network::place)
      .def("forward", &Network::forward, "x"_a, "copies"_a, "columns"_a, "rounds"_a)
      .def("backward", &Network::backward, "x"_a, "copies"_a, "weights"_a, "add"_a, "rounds"_a);
  m.def("has_bf16", &has_bf16);
}

void bind_rows(nb::module_& m) {
  m.def(
      "adam_step",
      [](const Buffer& parameters, const Buffer& mean, const Buffer& square, const Buffer& count,
         const Buffer& learning_rate, const Buffer& alive, const Buffer& norm, float beta1,
         float beta2, float epsilon, float max_norm, const Maybe& follower, float rate) {
        adam_step({parameters, mean, square, count, learning_rate, alive, norm, beta1, beta2,
                   epsilon, max_norm, given(follower), rate});
      },
      "parameters"_a, "mean"_a, "square"_a, "count"_a, "learning_rate"_a, "alive"_a, "norm"_a,
      "beta1"_a, "beta2"_a, "epsilon"_a, "max_norm"_a, "follower"_a.none(), "rate"_a);
  m.def("gather", &gather);
  m.def("take", &take);
  m.def("copy", &copy);
  m.def("fill", &fill);
  m.def("uniform", &uniform);
  m.def("advance", &advance);
  m.def("shuffle", &shuffle);
}

// ---- operations: buffers in order, None for one that is left out, then settings by name --------

template <class T>
struct Argument {
  using Type = T;
  static T of(T x) { return x; }
};
template <>
struct Argument<const Buffer&> {
  using Type = const Buffer*;
  static const Buffer& of(const Buffer* x) {
    static const Buffer none;
    return x == nullptr ? none : *x;
  }
};

template <class... Args, class... Names>
void def(nb::module_& m, const char* name, void (*f)(Args...), Names... names) {
  constexpr std::size_t kBuffers = sizeof...(Args) - sizeof...(Names);
  const auto bind = [&]<std::size_t... I>(std::index_sequence<I...>) {
    const auto buffer = [](std::size_t) { return nb::arg().none() = nb::none(); };
    m.def(
        name, [f](typename Argument<Args>::Type... x) { f(Argument<Args>::of(x)...); },
        buffer(I)..., nb::arg(names)...);
  };
  bind(std::make_index_sequence<kBuffers>());
}

void bind_operations(nb::module_& m) {
  def(m, "sample", &sample, "table");
  def(m, "mode", &mode, "table");
  def(m, "explore", &explore, "table");
  def(m, "rsample", &rsample, "table");
  def(m, "rsample_backward", &rsample_backward, "add", "table");
  def(m, "evaluate", &evaluate, "table", "given");
  def(m, "evaluate_backward", &evaluate_backward, "add", "table", "given");

  def(m, "policy_loss", &policy_loss, "ratios");
  def(m, "policy_loss_backward", &policy_loss_backward, "add", "ratios");
  def(m, "movement", &movement, "ratios");
  def(m, "adapt_coefficient", &adapt_coefficient, "target");

  def(m, "greedy", &greedy, "table");
  def(m, "advantages", &advantages, "table");
  def(m, "advantages_backward", &advantages_backward, "add", "table");
  def(m, "option_values", &option_values, "table");
  def(m, "option_values_backward", &option_values_backward, "add", "table");
  def(m, "total", &total, "adds_up");
  def(m, "total_backward", &total_backward, "add", "adds_up");
  def(m, "heads_last", &heads_last);
  def(m, "heads_last_backward", &heads_last_backward, "add");
  def(m, "value_error", &value_error, "coef", "huber");
  def(m, "value_error_backward", &value_error_backward, "add", "coef", "huber");
  def(m, "clipped_value_error", &clipped_value_error, "coef", "clip");
  def(m, "clipped_value_error_backward", &clipped_value_error_backward, "add", "coef", "clip");
  def(m, "in_use", &in_use, "table");
  def(m, "shares_in_use", &shares_in_use, "scale", "by_head");
  def(m, "td_target", &td_target);
  def(m, "discount_of", &discount_of);
  def(m, "actor_loss", &actor_loss);
  def(m, "actor_loss_backward", &actor_loss_backward, "add");
  def(m, "row_mean", &row_mean);
  def(m, "row_mean_backward", &row_mean_backward, "add");
  def(m, "multiply", static_cast<void (*)(const Buffer&, const Buffer&, const Buffer&)>(&multiply));
  def(m, "multiply_backward", &multiply_backward, "add");
  def(m, "add", &add);
  def(m, "add_backward", &add_backward, "add");

  def(m, "soft_value", &soft_value, "table", "adds_up", "plain");
  def(m, "soft_value_backward", &soft_value_backward, "add", "table", "adds_up", "plain");
  def(m, "boltzmann", &boltzmann, "table");
  def(m, "entropy_bonus", &entropy_bonus, "adds_up");
  def(m, "entropy_bonus_backward", &entropy_bonus_backward, "add", "adds_up");
  def(m, "target_entropy", &target_entropy, "table");
  def(m, "entropy_surplus", &entropy_surplus, "groups");
  def(m, "temperatures", &temperatures, "groups");

  def(m, "embed", &embed, "embedding");
  def(m, "embed_backward", &embed_backward, "add", "embedding");
  def(m, "relax", &relax, "table");
  def(m, "relax_backward", &relax_backward, "add", "table");
  def(m, "ask", &ask, "queries", "substitute");
  def(m, "expected_value", &expected_value, "queries");
  def(m, "expected_value_backward", &expected_value_backward, "add", "queries");

  def(m, "linear", &linear, "span");
  def(m, "decaying", &decaying, "start", "decay", "floor");

  def(m, "mix", &mix, "relu", "soft");
  def(m, "mix_backward", &mix_backward, "add", "relu", "soft");
  def(m, "mix_gradient", &mix_gradient, "relu", "soft");

  def(m, "gae", &gae, "num_envs");
  def(m, "row_shares", &row_shares);
  def(m, "standardize", &standardize);
}

}  // namespace
}  // namespace headwise::ops

NB_MODULE(HEADWISE_MODULE, m) {
  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const headwise::ops::Fault& fault) {
      PyErr_SetString(PyExc_ValueError, fault.what());
    } catch (const headwise::ops::EnvFault& fault) {
      std::string message = fault.what();
      if (message.ends_with('.')) message.pop_back();  // HeadwiseError ends the sentence itself
      PyErr_SetString(nb::module_::import_("headwise.errors").attr("EnvError").ptr(),
                      message.c_str());
    }
  });
  headwise::ops::bind_structures(m);
  headwise::ops::bind_network(m);
  headwise::ops::bind_rows(m);
  headwise::ops::bind_collecting(m);
  headwise::ops::bind_operations(m);
}
