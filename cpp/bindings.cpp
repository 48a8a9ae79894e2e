// The one file that knows Python exists.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>

#include "core/adam.h"
#include "core/fill.h"
#include "core/mixture.h"
#include "core/options_loss.h"
#include "core/rng.h"
#include "core/tanh.h"
#include "core/vec_env.h"
#include "envs/contextual_decoupler.h"
#include "envs/coop_push.h"
#include "envs/hybrid_shoot.h"
#include "envs/platform.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

template <class T, long... Shape>
using Array = nb::ndarray<T, nb::shape<Shape...>, nb::c_contig, nb::device::cpu>;

std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

std::string name_of(nb::handle key) {
  std::string name;
  if (!nb::try_cast(key, name)) throw Fault("a name must be text; got " + text_of(key) + ".");
  return name;
}

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

// --- settings -----------------------------------------------------------------------------------

std::string allowed_of(const Setting& setting) {
  struct Visitor {
    std::string operator()(const bool*) const { return "True or False"; }
    std::string operator()(const int*) const { return "a whole number"; }
    std::string operator()(const float*) const { return "a number"; }
    std::string operator()(const Points*) const { return "a list of (x, y) points"; }
    std::string operator()(const Word* word) const {
      std::string text;
      for (const auto& name : word->allowed) text += (text.empty() ? "'" : ", '") + name + "'";
      return text;
    }
  };
  return std::visit(Visitor{}, setting.place);
}

nb::object value_of(const Setting& setting) {
  struct Visitor {
    nb::object operator()(const bool* value) const { return nb::cast(*value); }
    nb::object operator()(const int* value) const { return nb::cast(*value); }
    nb::object operator()(const float* value) const { return nb::cast(*value); }
    nb::object operator()(const Points* value) const { return nb::cast(*value); }
    nb::object operator()(const Word* word) const {
      return nb::cast(word->allowed[static_cast<std::size_t>(word->value)]);
    }
  };
  return std::visit(Visitor{}, setting.place);
}

// Writes a Python value into a setting; false if it is of the wrong kind.
bool assign(const Setting& setting, nb::handle value) {
  struct Visitor {
    nb::handle value;
    bool operator()(bool* place) const {
      if (!nb::isinstance<nb::bool_>(value)) return false;
      *place = nb::cast<bool>(value);
      return true;
    }
    bool operator()(int* place) const {
      return !nb::isinstance<nb::bool_>(value) && nb::try_cast(value, *place);
    }
    bool operator()(float* place) const {
      double number = 0.0;
      if (nb::isinstance<nb::bool_>(value) || !nb::try_cast(value, number)) return false;
      *place = static_cast<float>(number);
      return true;
    }
    bool operator()(Points* place) const { return nb::try_cast(value, *place); }
    bool operator()(Word* word) const {
      std::string name;
      if (!nb::try_cast(value, name)) return false;
      const auto found = std::ranges::find(word->allowed, name);
      if (found == word->allowed.end()) return false;
      word->value = static_cast<int>(found - word->allowed.begin());
      return true;
    }
  };
  return std::visit(Visitor{value}, setting.place);
}

template <class E>
typename E::Params params_from(const nb::dict& given) {
  typename E::Params params;
  const std::vector<Setting> settings = params.settings();
  for (const auto& [key, value] : given) {
    const std::string name = name_of(key);
    const auto found = std::ranges::find(settings, name, &Setting::name);
    if (found == settings.end()) {
      throw Fault(std::string(E::kName) + ": unknown setting '" + name + "'.");
    }
    if (!assign(*found, value)) {
      throw Fault(std::string(E::kName) + ": setting '" + name + "' cannot be that; got " +
                  text_of(value) + "; allowed: " + allowed_of(*found) + ".");
    }
  }
  if (const std::string complaint = params.check(); !complaint.empty()) {
    throw Fault(std::string(E::kName) + ": impossible settings: " + complaint + ".");
  }
  params.prepare();
  return params;
}

// --- the environments ---------------------------------------------------------------------------

struct Kind {
  std::string name;
  std::unique_ptr<VecEnvBase> (*make)(int, const nb::dict&, std::optional<int>, Autoreset, int);
  nb::list (*settings)();
};

template <Env E>
Kind kind() {
  return {E::kName,
          [](int num_envs, const nb::dict& settings, std::optional<int> time_limit,
             Autoreset autoreset, int num_threads) -> std::unique_ptr<VecEnvBase> {
            auto params = params_from<E>(settings);
            const int limit = time_limit.value_or(E::time_limit(params));
            return std::make_unique<VecEnv<E>>(num_envs, std::move(params), limit, autoreset,
                                               num_threads);
          },
          [] {
            typename E::Params params;
            nb::list rows;
            for (const Setting& setting : params.settings()) {
              rows.append(nb::make_tuple(setting.name, value_of(setting), allowed_of(setting),
                                         setting.help));
            }
            return rows;
          }};
}

// A new environment is one header and one line here.
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> list = {
      kind<ContextualDecoupler>(),
      kind<Platform>(),
      kind<HybridShoot>(),
      kind<CoopPush>(),
  };
  return list;
}

const Kind& find_kind(const std::string& name) {
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  if (found == kinds().end()) throw Fault("unknown environment '" + name + "'.");
  return *found;
}

// --- the vector environment as Python holds it
// ----------------------------------------------------

class PyVecEnv {
 public:
  PyVecEnv(const std::string& name, int num_envs, const nb::dict& settings,
           std::optional<int> time_limit, int autoreset, int num_threads)
      : name_(name),
        env_(find_kind(name).make(
            within(name, "num_envs", num_envs, 1, 1 << 24), settings,
            time_limit
                ? std::optional(within(name, "max_episode_steps", *time_limit, 0, 1'000'000'000))
                : std::nullopt,
            static_cast<Autoreset>(within(name, "autoreset", autoreset, 0, 2)),
            within(name, "num_threads", num_threads, 1, 1024))) {}

  void attach(Array<std::int32_t, -1, -1> choices, Array<float, -1, -1> ranges,
              Array<float, -1, -1> obs, Array<float, -1, -1> next_obs, Array<float, -1> reward,
              Array<bool, -1> terminated, Array<bool, -1> truncated,
              Array<float, -1> episode_return, Array<std::int32_t, -1> episode_length) {
    const Turn turn(busy_);
    const auto n = static_cast<std::size_t>(env_->num_envs());
    const auto fits = [n](const auto& array, int columns) {
      return array.shape(0) == n && array.shape(1) == static_cast<std::size_t>(columns);
    };
    if (!fits(choices, env_->num_choices()) || !fits(ranges, env_->num_ranges()) ||
        !fits(obs, env_->obs_size()) || !fits(next_obs, env_->obs_size()) || reward.shape(0) != n ||
        terminated.shape(0) != n || truncated.shape(0) != n || episode_return.shape(0) != n ||
        episode_length.shape(0) != n) {
      throw Fault("the arrays given do not fit the environment.");
    }
    env_->attach({choices.data(), ranges.data(), obs.data(), next_obs.data(), reward.data(),
                  terminated.data(), truncated.data(), episode_return.data(),
                  episode_length.data()});
    attached_ = true;
  }

  void seed(Array<const std::uint64_t, -1> seeds, Array<const std::uint32_t, -1> lanes,
            const std::optional<Array<const bool, -1>>& mask) {
    const Turn turn(busy_);
    const auto n = static_cast<std::size_t>(env_->num_envs());
    if (seeds.shape(0) != n || lanes.shape(0) != n) {
      throw Fault("seeds and lanes must be one for each slot.");
    }
    env_->seed({seeds.data(), n}, {lanes.data(), n}, checked(mask));
  }

  void reset(const std::optional<Array<const bool, -1>>& mask) {
    const Turn turn(busy_);
    require_arrays();
    env_->reset(checked(mask));
  }

  void step() {
    const Turn turn(busy_);
    require_arrays();
    const nb::gil_scoped_release release;
    env_->step();
  }

  // Of any shape with one row for each slot, so that Python need not flatten members and slots.
  void step_units(nb::ndarray<const float, nb::numpy, nb::device::cpu, nb::c_contig> heads) {
    const Turn turn(busy_);
    require_arrays();
    const auto columns = static_cast<std::size_t>(env_->num_choices() + env_->num_ranges());
    const auto rows = static_cast<std::size_t>(env_->num_envs());
    if (heads.ndim() < 2 || heads.shape(heads.ndim() - 1) != columns ||
        heads.size() != rows * columns) {
      throw Fault("the actions must have one row for each slot and one column for each head.");
    }
    const nb::gil_scoped_release release;
    env_->step_units(heads.data());
  }

  [[nodiscard]] nb::bytes snapshot() const {
    const Turn turn(busy_);
    const std::string bytes = env_->snapshot();
    return nb::bytes(bytes.data(), bytes.size());
  }
  void restore(const nb::bytes& bytes) {
    const Turn turn(busy_);
    require_arrays();
    env_->restore({bytes.c_str(), bytes.size()});
  }

  [[nodiscard]] nb::dict state(int slot) const {
    const Turn turn(busy_);
    check_slot(slot);
    nb::dict result;
    for (const Field& field : env_->fields(slot)) result[field.name.c_str()] = values_of(field);
    return result;
  }

  // Writes the given fields of a slot; if the result is impossible, the slot is as it was.
  void set_state(int slot, const nb::dict& values) {
    const Turn turn(busy_);
    require_arrays();
    check_slot(slot);
    std::vector<Field> fields = env_->fields(slot);
    std::vector<std::pair<const Field*, std::vector<double>>> news, olds;
    for (const auto& [key, value] : values) {
      const std::string name = name_of(key);
      const auto field = std::ranges::find(fields, name, &Field::name);
      if (field == fields.end()) {
        std::string known;
        for (const Field& other : fields) known += (known.empty() ? "" : ", ") + other.name;
        throw Fault("unknown part of the state '" + name + "'; allowed: " + known + ".");
      }
      Array<const double, -1> numbers;
      if (!nb::try_cast(value, numbers) || static_cast<int>(numbers.shape(0)) != count(*field)) {
        throw Fault("the state has another shape at '" + name + "'; got " + text_of(value) +
                    "; allowed: " + std::to_string(count(*field)) + " numbers.");
      }
      for (std::size_t i = 0; i < numbers.shape(0); ++i) {
        if (!can_hold(*field, numbers.data()[i])) {
          throw Fault(name_ + ": impossible state for slot " + std::to_string(slot) + " at '" +
                      name + "'; got " + text_of(value) + "; allowed: whole numbers.");
        }
      }
      news.emplace_back(&*field,
                        std::vector<double>(numbers.data(), numbers.data() + numbers.shape(0)));
      olds.emplace_back(&*field, read(*field));
    }
    for (const auto& [field, numbers] : news) write(*field, numbers);
    try {
      env_->accept_state(slot);
    } catch (...) {
      for (const auto& [field, numbers] : olds) write(*field, numbers);
      throw;
    }
  }

  [[nodiscard]] VecEnvBase& env() const { return *env_; }

 private:
  // One call at a time: a step lets other threads of Python run, and they may hold this object too.
  class Turn {
   public:
    explicit Turn(std::atomic<bool>& busy) : busy_(busy) {
      if (busy_.exchange(true)) throw Fault("the environment is in use by another thread.");
    }
    ~Turn() { busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::atomic<bool>& busy_;
  };

  static int within(const std::string& name, const char* what, int value, int low, int high) {
    if (value < low || value > high) {
      throw Fault(name + ": " + what + " is out of range; got " + std::to_string(value) +
                  "; allowed: " + std::to_string(low) + " to " + std::to_string(high) + ".");
    }
    return value;
  }
  void require_arrays() const {
    if (!attached_) throw Fault("the environment has no arrays yet. Call attach() first.");
  }
  [[nodiscard]] const bool* checked(const std::optional<Array<const bool, -1>>& mask) const {
    if (mask && mask->shape(0) != static_cast<std::size_t>(env_->num_envs())) {
      throw Fault("the mask must have one entry for each slot.");
    }
    return mask ? mask->data() : nullptr;
  }
  void check_slot(int slot) const {
    if (slot < 0 || slot >= env_->num_envs()) {
      throw Fault("there is no slot " + std::to_string(slot) + "; allowed: 0 to " +
                  std::to_string(env_->num_envs() - 1) + ".");
    }
  }
  static bool can_hold(const Field& field, double number) {
    return !std::holds_alternative<std::int32_t*>(field.data) ||
           (number == std::floor(number) && std::abs(number) <= 2147483647.0);
  }
  static int count(const Field& field) {
    return std::max(field.rows, 1) * std::max(field.columns, 1);
  }
  // Calls visit(element, number) for each element of a field, rows first.
  template <class F>
  static void each(const Field& field, F&& visit) {
    int index = 0;
    for (int r = 0; r < std::max(field.rows, 1); ++r) {
      for (int c = 0; c < std::max(field.columns, 1); ++c) {
        const auto offset = r * field.row_stride + c * field.column_stride;
        std::visit([&](auto* data) { visit(data[offset], index++); }, field.data);
      }
    }
  }
  static std::vector<double> read(const Field& field) {
    std::vector<double> numbers(static_cast<std::size_t>(count(field)));
    each(field, [&](auto& element, int i) {
      numbers[static_cast<std::size_t>(i)] = static_cast<double>(element);
    });
    return numbers;
  }
  static void write(const Field& field, const std::vector<double>& numbers) {
    each(field, [&](auto& element, int i) {
      element = static_cast<std::remove_reference_t<decltype(element)>>(
          numbers[static_cast<std::size_t>(i)]);
    });
  }
  static nb::object values_of(const Field& field) {
    const std::vector<double> numbers = read(field);
    return nb::make_tuple(nb::cast(numbers), field.rows, field.columns);
  }

  const std::string name_;
  std::unique_ptr<VecEnvBase> env_;
  bool attached_ = false;
  mutable std::atomic<bool> busy_{false};
};

}  // namespace
}  // namespace headwise

NB_MODULE(_core, m) {
  using namespace headwise;
  m.doc() = "The compiled heart of Headwise: environments and counter-based randomness.";

  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const Fault& fault) {
      std::string message = fault.what();
      if (message.ends_with('.')) message.pop_back();  // HeadwiseError ends the sentence itself
      PyErr_SetString(nb::module_::import_("headwise.errors").attr("EnvError").ptr(),
                      message.c_str());
    }
  });

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
      "adam_step",
      [](Array<float, -1> value, Array<float, -1> grad, Array<float, -1> mean,
         Array<float, -1> square, Array<const std::int64_t, -1> offsets,
         Array<const std::int64_t, -1> sizes, Array<const float, -1> learning_rate,
         Array<bool, -1> alive, Array<float, -1> norm, std::int64_t count, float beta1, float beta2,
         float epsilon, float max_norm) {
        const std::size_t members = alive.shape(0);
        for (const auto& array : {grad, mean, square}) {
          if (array.shape(0) != value.shape(0)) throw Fault("tensors of unequal sizes.");
        }
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
                   square.data(), norm.data(), learning_rate.data(), alive.data()},
                  {offsets.data(), sizes.data(), static_cast<std::int64_t>(sizes.shape(0))}, count,
                  beta1, beta2, epsilon, max_norm);
      },
      "value"_a.noconvert(), "grad"_a.noconvert(), "mean"_a.noconvert(), "square"_a.noconvert(),
      "offsets"_a.noconvert(), "sizes"_a.noconvert(), "learning_rate"_a.noconvert(),
      "alive"_a.noconvert(), "norm"_a.noconvert(), "count"_a, "beta1"_a, "beta2"_a, "epsilon"_a,
      "max_norm"_a, "One clipped Adam step of every member; dead members are left as they are.");

  m.def(
      "environments",
      [] {
        nb::dict result;
        for (const Kind& kind : kinds()) {
          result[kind.name.c_str()] = kind.settings();
        }
        return result;
      },
      nb::sig("def environments() -> dict[str, list[tuple[str, object, str, str]]]"),
      "The environments and the settings of each: (name, default, allowed, help).");

  nb::class_<PyVecEnv>(m, "VecEnv", "Many slots of one environment, stepped together.")
      .def(nb::init<const std::string&, int, const nb::dict&, std::optional<int>, int, int>(),
           "name"_a, "num_envs"_a, "settings"_a, "time_limit"_a.none(), "autoreset"_a,
           "num_threads"_a,
           nb::sig("def __init__(self, name: str, num_envs: int, settings: dict[str, object], "
                   "time_limit: int | None, autoreset: int, num_threads: int) -> None"))
      .def("attach", &PyVecEnv::attach, "choices"_a.noconvert(), "ranges"_a.noconvert(),
           "obs"_a.noconvert(), "next_obs"_a.noconvert(), "reward"_a.noconvert(),
           "terminated"_a.noconvert(), "truncated"_a.noconvert(), "episode_return"_a.noconvert(),
           "episode_length"_a.noconvert(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
           nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
           nb::keep_alive<1, 7>(), nb::keep_alive<1, 8>(), nb::keep_alive<1, 9>(),
           nb::keep_alive<1, 10>(), "The caller's arrays, written in place at every step.")
      .def("seed", &PyVecEnv::seed, "seeds"_a.noconvert(), "lanes"_a.noconvert(),
           "mask"_a.none() = nb::none(),
           "A seed and a lane for each slot, or for those of the mask: the address of its "
           "randomness.")
      .def("reset", &PyVecEnv::reset, "mask"_a.none() = nb::none(),
           "Starts an episode in every slot, or in those of the mask.")
      .def("step", &PyVecEnv::step, "One step of every slot, with the actions in the arrays.")
      .def("step_units", &PyVecEnv::step_units, "heads"_a.noconvert(),
           "One step with actions as learners give them: options, and ranges from -1 to 1.")
      .def("snapshot", &PyVecEnv::snapshot, "The whole state of every slot, as bytes.")
      .def("restore", &PyVecEnv::restore, "bytes"_a, "Goes back to a snapshot.")
      .def("state", &PyVecEnv::state, "slot"_a,
           nb::sig("def state(self, slot: int) -> dict[str, tuple[list[float], int, int]]"),
           "The state of a slot: for each part its numbers, rows and columns.")
      .def("set_state", &PyVecEnv::set_state, "slot"_a, "values"_a,
           nb::sig(
               "def set_state(self, slot: int, values: dict[str, NDArray[numpy.float64]]) -> None"),
           "Sets parts of the state of a slot, each a flat float64 array.")
      .def_prop_ro("num_envs", [](const PyVecEnv& self) { return self.env().num_envs(); })
      .def_prop_ro("time_limit", [](const PyVecEnv& self) { return self.env().time_limit(); })
      .def_prop_ro("obs_size", [](const PyVecEnv& self) { return self.env().obs_size(); })
      .def_prop_ro("obs_low", [](const PyVecEnv& self) { return self.env().obs_low(); })
      .def_prop_ro("obs_high", [](const PyVecEnv& self) { return self.env().obs_high(); })
      .def_prop_ro(
          "heads",
          [](const PyVecEnv& self) {
            std::vector<std::tuple<std::string, int, float, float, int>> rows;
            for (const Head& head : self.env().heads()) {
              rows.emplace_back(head.name, head.options, head.low, head.high, head.levels);
            }
            return rows;
          },
          "The heads, choices first: (name, options or 0, low, high, different values or 0).");
}
