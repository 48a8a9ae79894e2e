// What Python sees of the environments. Only files of bindings know of Python.
#include "bindings.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <memory>
#include <optional>

#include "core/env_port.h"
#include "core/registry.h"
#include "environments.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

std::string text_of(nb::handle value) { return nb::cast<std::string>(nb::repr(value)); }

std::string name_of(nb::handle key) {
  std::string name;
  if (!nb::try_cast(key, name)) throw Fault("a name must be text; got " + text_of(key) + ".");
  return name;
}

// --- settings -----------------------------------------------------------------------------------

std::string allowed_of(const Setting& setting) {
  struct Visitor {
    std::string operator()(const bool*) const { return "True or False"; }
    std::string operator()(const int*) const { return "a whole number"; }
    std::string operator()(const float*) const { return "a number"; }
    std::string operator()(const double*) const { return "a number"; }
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
    nb::object operator()(const double* value) const { return nb::cast(*value); }
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
      if (!(*this)(&number)) return false;
      *place = static_cast<float>(number);
      return true;
    }
    bool operator()(double* place) const {
      return !nb::isinstance<nb::bool_>(value) && nb::try_cast(value, *place);
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

// Writes the settings given, each of which must be known and allowed, into an environment's draft.
void write_settings(const std::string& env, Draft& draft, const nb::dict& given) {
  const std::vector<Setting> settings = draft.settings();
  for (const auto& [key, value] : given) {
    const std::string name = name_of(key);
    const auto found = std::ranges::find(settings, name, &Setting::name);
    if (found == settings.end()) throw Fault(env + ": unknown setting '" + name + "'.");
    if (!assign(*found, value)) {
      throw Fault(env + ": setting '" + name + "' cannot be that; got " + text_of(value) +
                  "; allowed: " + allowed_of(*found) + ".");
    }
  }
  if (const std::string complaint = draft.check(); !complaint.empty()) {
    throw Fault(env + ": impossible settings: " + complaint + ".");
  }
}

// --- the environments ---------------------------------------------------------------------------

const Kind& find_kind(const std::string& name) {
  const auto found = std::ranges::find(kinds(), name, &Kind::name);
  if (found == kinds().end()) throw Fault("unknown environment '" + name + "'.");
  return *found;
}

nb::list settings_of(const Kind& kind) {
  const std::unique_ptr<Draft> draft = kind.draft();
  nb::list rows;
  for (const Setting& setting : draft->settings()) {
    rows.append(nb::make_tuple(setting.name, value_of(setting), allowed_of(setting), setting.help));
  }
  return rows;
}

std::unique_ptr<VecEnvBase> made(const std::string& name, int num_envs, const nb::dict& settings,
                                 std::optional<int> time_limit, Autoreset autoreset,
                                 int num_threads) {
  const std::unique_ptr<Draft> draft = find_kind(name).draft();
  write_settings(name, *draft, settings);
  return draft->make(num_envs, time_limit, autoreset, num_threads);
}

// --- the vector environment as Python holds it --------------------------------------------------

class PyVecEnv {
 public:
  PyVecEnv(const std::string& name, int num_envs, const nb::dict& settings,
           std::optional<int> time_limit, int autoreset, int num_threads)
      : name_(name),
        env_(made(name, within(name, "num_envs", num_envs, 1, 1 << 24), settings,
                  time_limit ? std::optional(
                                   within(name, "max_episode_steps", *time_limit, 0, 1'000'000'000))
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

  // The same for other compiled modules, without Python.
  static const char* step_port(void* self, const float* heads) noexcept {
    auto* const env = static_cast<PyVecEnv*>(self);
    try {
      const Turn turn(env->busy_);
      env->require_arrays();
      env->env_->step_units(heads);
      return nullptr;
    } catch (const std::exception& error) {
      env->complaint_ = error.what();
      return env->complaint_.c_str();
    }
  }
  static nb::capsule port(nb::handle self) {
    struct Held : EnvPort {
      nb::object owner;
    };
    auto* const env = nb::cast<PyVecEnv*>(self);
    const VecEnvBase& base = env->env();
    auto* const held = new Held{
        {env, base.num_envs(), base.num_choices() + base.num_ranges(), &PyVecEnv::step_port},
        nb::borrow(self)};
    return {static_cast<EnvPort*>(held), EnvPort::kName,
            [](void* port) noexcept { delete static_cast<Held*>(static_cast<EnvPort*>(port)); }};
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
  std::string complaint_;  // about the last step of `port`
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

  m.def(
      "best_isa",
      [] { return kIsa == Isa::kAvx512 ? "avx512"
                  : kIsa == Isa::kAvx2 ? "avx2"
                                       : "baseline"; },
      "The instruction set in use: the best that this machine has, or what HEADWISE_ISA asks for.");
  bind_draws(m);
  m.def(
      "environments",
      [] {
        nb::dict result;
        for (const Kind& kind : kinds()) {
          result[kind.name.c_str()] = settings_of(kind);
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
      .def("port", &PyVecEnv::port, nb::sig("def port(self) -> object"),
           "What compiled learners step it by; keeps it alive.")
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
