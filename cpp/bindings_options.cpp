// What Python sees of the kernels that draw, judge, relax and centre options.
#include <nanobind/stl/optional.h>

#include <limits>
#include <optional>
#include <string>

#include "bindings.h"
#include "core/branches.h"
#include "core/draw_options.h"
#include "core/spec.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace headwise {
namespace {

// Rows of numbers that may be some columns of wider rows.
using Wide = nb::ndarray<const float, nb::ndim<2>, nb::device::cpu>;
using Bounds = Array<const std::int32_t, -1>;
using Places = Array<const std::int64_t, -1>;

constexpr std::int32_t kNoLimit = std::numeric_limits<std::int32_t>::max();

std::int64_t whole(std::size_t n) { return static_cast<std::int64_t>(n); }

template <class A>
void need(const A& array, std::initializer_list<std::size_t> shape) {
  if (!std::equal(shape.begin(), shape.end(), array.shape_ptr())) {
    throw Fault("arrays that do not fit each other.");
  }
}

options::Rows rows_of(const Wide& array, std::size_t rows, std::size_t columns) {
  need(array, {rows, columns});
  if (columns > 1 && array.stride(1) != 1) throw Fault("rows must be contiguous.");
  return {array.data(), array.stride(0)};
}

// The heads, once their bounds are known to be in order, the last of them `total`.
options::Heads heads_of(const Bounds& bounds, std::size_t total, std::size_t most,
                        std::int32_t limit = options::kMaxOptions) {
  if (bounds.shape(0) < 1 || bounds.data()[0] != 0) throw Fault("heads begin at option 0.");
  const std::size_t count = bounds.shape(0) - 1;
  const std::int32_t* at = bounds.data();
  for (std::size_t head = 0; head < count; ++head) {
    const std::int64_t options = std::int64_t{at[head + 1]} - at[head];
    if (options < 1 || options > limit || options > whole(most)) {
      throw Fault("a head must have 1 to " +
                  std::to_string(std::min(whole(most), std::int64_t{limit})) + " options; got " +
                  std::to_string(options) + ".");
    }
  }
  if (whole(total) != at[count]) throw Fault("bounds end where options do not.");
  return {at, whole(count), whole(most)};
}

// Places among so many heads.
void check_places(const Places& places, std::size_t count, std::size_t heads) {
  need(places, {count});
  for (std::size_t i = 0; i < count; ++i) {
    if (places.data()[i] < 0 || places.data()[i] >= whole(heads)) throw Fault("no such head.");
  }
}

options::Actor actor_of(const Bounds& bounds, const Places& choices, const Places& ranges,
                        std::size_t width, std::size_t most, float low, float half) {
  const std::size_t count = choices.shape(0), all = count + ranges.shape(0);
  if (bounds.shape(0) != count + 1 || width < 2 * ranges.shape(0)) throw Fault("no such heads.");
  check_places(choices, count, all);
  check_places(ranges, ranges.shape(0), all);
  return {heads_of(bounds, width - 2 * ranges.shape(0), most),
          whole(all),
          whole(ranges.shape(0)),
          choices.data(),
          ranges.data(),
          low,
          half};
}

options::Embedding embedding_of(const options::Heads& heads, std::size_t obs, const Places& columns,
                                const Places& choices, const Places& ranges,
                                const Array<const float, 3, -1>& numbers) {
  const std::size_t all = columns.shape(0), size = numbers.shape(1);
  check_places(columns, all, size);
  check_places(choices, static_cast<std::size_t>(heads.count), all);
  check_places(ranges, ranges.shape(0), all);
  const float* match = numbers.data();
  for (std::int64_t head = 0; head < heads.count; ++head) {
    const std::int64_t place = columns.data()[choices.data()[head]];
    const std::int64_t options = heads.bounds[head + 1] - heads.bounds[head];
    if (match[place] >= 0.0f && place + options > whole(size)) throw Fault("no such column.");
  }
  return {whole(obs),     whole(all),    whole(size), whole(ranges.shape(0)), columns.data(),
          choices.data(), ranges.data(), match,       match + size,           match + 2 * size};
}

}  // namespace

void bind_options(nb::module_& m) {
  m.def(
      "draw_heads",
      [](Wide outputs, Wide uniform, Bounds bounds, Places choices, Places ranges, float low,
         float half, Array<float, -1, -1> unit, Array<float, -1, -1> entropy,
         Array<float, -1, -1, -1> log_probs, Array<float, -1, -1> spread) {
        const std::size_t rows = outputs.shape(0), count = choices.shape(0);
        const std::size_t all = count + ranges.shape(0), most = log_probs.shape(2);
        const options::Actor actor =
            actor_of(bounds, choices, ranges, outputs.shape(1), most, low, half);
        const options::Rows from = rows_of(outputs, rows, outputs.shape(1));
        const options::Rows chance = rows_of(uniform, rows, all);
        need(unit, {rows, all});
        need(entropy, {rows, all});
        need(log_probs, {rows, count, most});
        need(spread, {rows, ranges.shape(0)});
        const nb::gil_scoped_release release;
        draw_heads(whole(rows), actor, from, chance,
                   {unit.data(), entropy.data(), log_probs.data(), spread.data()});
      },
      "outputs"_a.noconvert(), "uniform"_a.noconvert(), "bounds"_a.noconvert(),
      "choices"_a.noconvert(), "ranges"_a.noconvert(), "low"_a, "half"_a, "unit"_a.noconvert(),
      "entropy"_a.noconvert(), "log_probs"_a.noconvert(), "spread"_a.noconvert(),
      "Actions drawn from the outputs of an actor: entropies of options or minus log-densities, "
      "padded log-probabilities, and how far numbers are from their means.");
  m.def(
      "draw_heads_back",
      [](Wide outputs, Array<const float, -1, -1> unit, Array<const float, -1, -1> entropy,
         Array<const float, -1, -1, -1> log_probs, Array<const float, -1, -1> spread,
         std::optional<Array<const float, -1, -1>> by_unit,
         std::optional<Array<const float, -1, -1>> by_entropy,
         std::optional<Array<const float, -1, -1, -1>> by_log_probs, Bounds bounds, Places choices,
         Places ranges, float half, Array<float, -1, -1> to_outputs) {
        const std::size_t rows = outputs.shape(0), count = choices.shape(0);
        const std::size_t all = count + ranges.shape(0), most = log_probs.shape(2);
        const options::Actor actor =
            actor_of(bounds, choices, ranges, outputs.shape(1), most, 0.0f, half);
        const options::Rows from = rows_of(outputs, rows, outputs.shape(1));
        need(unit, {rows, all});
        need(entropy, {rows, all});
        need(log_probs, {rows, count, most});
        need(spread, {rows, ranges.shape(0)});
        need(to_outputs, {rows, outputs.shape(1)});
        if (by_unit) need(*by_unit, {rows, all});
        if (by_entropy) need(*by_entropy, {rows, all});
        if (by_log_probs) need(*by_log_probs, {rows, count, most});
        const nb::gil_scoped_release release;
        draw_heads_back(
            whole(rows), actor, from,
            {unit.data(), entropy.data(), log_probs.data(), spread.data(),
             by_unit ? by_unit->data() : nullptr, by_entropy ? by_entropy->data() : nullptr,
             by_log_probs ? by_log_probs->data() : nullptr},
            to_outputs.data());
      },
      "outputs"_a.noconvert(), "unit"_a.noconvert(), "entropy"_a.noconvert(),
      "log_probs"_a.noconvert(), "spread"_a.noconvert(), "by_unit"_a.noconvert().none(),
      "by_entropy"_a.noconvert().none(), "by_log_probs"_a.noconvert().none(),
      "bounds"_a.noconvert(), "choices"_a.noconvert(), "ranges"_a.noconvert(), "half"_a,
      "to_outputs"_a.noconvert(), "The gradient of a draw by the outputs.");
  m.def(
      "embed_actions",
      [](Wide obs, Wide action, Places owner, Array<const float, 3, -1> numbers,
         Array<float, -1, -1> out) {
        const std::size_t rows = out.shape(0), size = numbers.shape(1);
        check_places(owner, size, action.shape(1));
        need(out, {rows, obs.shape(1) + size});
        const options::Rows seen = rows_of(obs, rows, obs.shape(1));
        const options::Rows unit = rows_of(action, rows, action.shape(1));
        const float* match = numbers.data();
        const nb::gil_scoped_release release;
        embed_actions(whole(rows),
                      {whole(obs.shape(1)), whole(action.shape(1)), whole(size), 0, nullptr,
                       nullptr, nullptr, match, match + size, match + 2 * size},
                      owner.data(), seen, unit, out.data());
      },
      "obs"_a.noconvert(), "action"_a.noconvert(), "owner"_a.noconvert(), "numbers"_a.noconvert(),
      "out"_a.noconvert(), "Observations beside embedded actions.");
  m.def(
      "relax_options",
      [](Array<const float, -1, -1, -1> log_probs, Bounds bounds, Wide noise, float softness,
         Wide obs, Wide action, Places columns, Places choices, Places ranges,
         Array<const float, 3, -1> numbers, Array<float, -1, -1, -1> soft,
         Array<float, -1, -1> out) {
        const std::size_t rows = log_probs.shape(0), most = log_probs.shape(2);
        if (bounds.shape(0) < 2) throw Fault("heads begin at option 0.");
        const std::size_t count = bounds.shape(0) - 1;
        const options::Heads heads =
            heads_of(bounds, static_cast<std::size_t>(bounds.data()[count]), most);
        const options::Embedding embedding =
            embedding_of(heads, obs.shape(1), columns, choices, ranges, numbers);
        need(log_probs, {rows, count, most});
        need(soft, {rows, count, most});
        need(out, {rows, obs.shape(1) + numbers.shape(1)});
        const options::Rows chance = rows_of(noise, rows, count * most);
        const options::Rows seen = rows_of(obs, rows, obs.shape(1));
        const options::Rows unit = rows_of(action, rows, columns.shape(0));
        const nb::gil_scoped_release release;
        relax_options(whole(rows), heads, embedding, log_probs.data(), chance, softness, seen, unit,
                      soft.data(), out.data());
      },
      "log_probs"_a.noconvert(), "bounds"_a.noconvert(), "noise"_a.noconvert(), "softness"_a,
      "obs"_a.noconvert(), "action"_a.noconvert(), "columns"_a.noconvert(), "choices"_a.noconvert(),
      "ranges"_a.noconvert(), "numbers"_a.noconvert(), "soft"_a.noconvert(), "out"_a.noconvert(),
      "Observations beside embedded actions with options that are the largest of a "
      "Gumbel-softmax.");
  m.def(
      "relax_options_back",
      [](Array<const float, -1, 2, -1, -1> grad, Array<const float, -1, -1, -1> soft, Bounds bounds,
         float softness, Places columns, Places choices, Places ranges,
         Array<const float, 3, -1> numbers, Array<float, -1, -1, -1> to_log_probs,
         std::optional<Array<float, -1, -1>> to_action) {
        const std::size_t members = grad.shape(0), each = grad.shape(2), most = soft.shape(2);
        const std::size_t rows = members * each, all = columns.shape(0);
        if (bounds.shape(0) < 2) throw Fault("heads begin at option 0.");
        if (grad.shape(3) < numbers.shape(1)) throw Fault("gradients of too few columns.");
        const std::size_t count = bounds.shape(0) - 1;
        const options::Heads heads =
            heads_of(bounds, static_cast<std::size_t>(bounds.data()[count]), most);
        const options::Embedding embedding = embedding_of(heads, grad.shape(3) - numbers.shape(1),
                                                          columns, choices, ranges, numbers);
        need(soft, {rows, count, most});
        need(to_log_probs, {rows, count, most});
        if (to_action) need(*to_action, {rows, all});
        const nb::gil_scoped_release release;
        relax_options_back(whole(rows), whole(each), heads, embedding, grad.data(), soft.data(),
                           softness, to_log_probs.data(), to_action ? to_action->data() : nullptr);
      },
      "grad"_a.noconvert(), "soft"_a.noconvert(), "bounds"_a.noconvert(), "softness"_a,
      "columns"_a.noconvert(), "choices"_a.noconvert(), "ranges"_a.noconvert(),
      "numbers"_a.noconvert(), "to_log_probs"_a.noconvert(), "to_action"_a.noconvert().none(),
      "The gradients of two critics by log-probabilities and by the numbers of actions.");
  m.def(
      "soft_branches",
      [](Array<const float, -1, 2, -1, -1> advantage, Array<const float, -1, 2, -1> value,
         Bounds bounds, Places choices, Array<const float, -1, -1> temperature,
         Array<float, -1, -1> total, Array<float, -1, -1, -1> entropy,
         Array<std::int32_t, -1, -1> which) {
        const std::size_t members = advantage.shape(0), rows = advantage.shape(2);
        const options::Heads heads = heads_of(bounds, advantage.shape(3), options::kMaxOptions);
        const std::size_t count = bounds.shape(0) - 1, all = temperature.shape(1);
        check_places(choices, count, all);
        need(value, {members, 2, rows});
        need(temperature, {members, all});
        need(total, {members, rows});
        need(entropy, {members, rows, count});
        need(which, {members, rows});
        const nb::gil_scoped_release release;
        soft_branches(heads,
                      {whole(members), whole(rows), whole(all), choices.data(), advantage.data(),
                       temperature.data()},
                      value.data(), total.data(), entropy.data(), which.data());
      },
      "advantage"_a.noconvert(), "value"_a.noconvert(), "bounds"_a.noconvert(),
      "choices"_a.noconvert(), "temperature"_a.noconvert(), "total"_a.noconvert(),
      "entropy"_a.noconvert(), "which"_a.noconvert(),
      "Soft values of twin critics by the lesser, which that is, and the first one's entropies.");
  m.def(
      "soft_branches_back",
      [](Array<const float, -1, -1> grad, Array<const std::int32_t, -1, -1> which,
         Array<const float, -1, 2, -1, -1> advantage, Bounds bounds, Places choices,
         Array<const float, -1, -1> temperature, Array<float, -1, 2, -1> to_value,
         Array<float, -1, 2, -1, -1> to_advantage) {
        const std::size_t members = advantage.shape(0), rows = advantage.shape(2);
        const options::Heads heads = heads_of(bounds, advantage.shape(3), options::kMaxOptions);
        const std::size_t all = temperature.shape(1);
        check_places(choices, bounds.shape(0) - 1, all);
        need(temperature, {members, all});
        need(grad, {members, rows});
        need(which, {members, rows});
        need(to_value, {members, 2, rows});
        need(to_advantage, {members, 2, rows, advantage.shape(3)});
        const nb::gil_scoped_release release;
        soft_branches_back(heads,
                           {whole(members), whole(rows), whole(all), choices.data(),
                            advantage.data(), temperature.data()},
                           grad.data(), which.data(), to_value.data(), to_advantage.data());
      },
      "grad"_a.noconvert(), "which"_a.noconvert(), "advantage"_a.noconvert(),
      "bounds"_a.noconvert(), "choices"_a.noconvert(), "temperature"_a.noconvert(),
      "to_value"_a.noconvert(), "to_advantage"_a.noconvert(),
      "The gradients of soft values by values and advantages.");
  m.def(
      "lesser_worth",
      [](Array<const float, -1, 2, -1> values,
         std::optional<Array<const float, -1, -1, -1>> entropy,
         Array<const float, -1, -1> temperature, Array<float, -1, -1> out,
         Array<float, -1, -1> which) {
        const std::size_t members = values.shape(0), rows = values.shape(2);
        const std::size_t heads = entropy ? entropy->shape(2) : 0;
        if (entropy) need(*entropy, {members, rows, heads});
        need(temperature, {members, heads});
        need(out, {members, rows});
        need(which, {members, rows});
        const nb::gil_scoped_release release;
        lesser_worth(whole(members), whole(rows), whole(heads), values.data(),
                     entropy ? entropy->data() : nullptr, temperature.data(), out.data(),
                     which.data());
      },
      "values"_a.noconvert(), "entropy"_a.noconvert().none(), "temperature"_a.noconvert(),
      "out"_a.noconvert(), "which"_a.noconvert(),
      "The lesser of twin values plus temperatures times entropies, and which twin that is.");
  m.def(
      "lesser_worth_back",
      [](Array<const float, -1, -1> grad, Array<const float, -1, -1> temperature,
         Array<const float, -1, -1> which, Array<float, -1, 2, -1> to_values,
         std::optional<Array<float, -1, -1, -1>> to_entropy) {
        const std::size_t members = grad.shape(0), rows = grad.shape(1);
        const std::size_t heads = temperature.shape(1);
        need(temperature, {members, heads});
        need(which, {members, rows});
        need(to_values, {members, 2, rows});
        if (heads > 0 && !to_entropy) throw Fault("entropies have gradients too.");
        if (to_entropy) need(*to_entropy, {members, rows, heads});
        const nb::gil_scoped_release release;
        lesser_worth_back(whole(members), whole(rows), whole(heads), grad.data(),
                          temperature.data(), which.data(), to_values.data(),
                          to_entropy ? to_entropy->data() : nullptr);
      },
      "grad"_a.noconvert(), "temperature"_a.noconvert(), "which"_a.noconvert(),
      "to_values"_a.noconvert(), "to_entropy"_a.noconvert().none(),
      "The gradients of the lesser of twin values, and of what entropies are worth.");
  m.def(
      "centre_options",
      [](std::optional<Array<const float, -1>> value, Array<const float, -1, -1> advantage,
         Array<const float, -1, -1> taken, Bounds bounds, Array<float, -1, -1> out,
         Array<std::int32_t, -1, -1> best) {
        const std::size_t rows = advantage.shape(0), width = advantage.shape(1);
        const options::Heads heads = heads_of(bounds, width, width, kNoLimit);
        const std::size_t count = bounds.shape(0) - 1, columns = out.shape(1);
        if (columns != 1 && columns != count) throw Fault("one number for each head, or for all.");
        if (value) need(*value, {rows});
        need(taken, {rows, count});
        need(out, {rows, columns});
        need(best, {rows, count});
        bool exist = true;
        {
          const nb::gil_scoped_release release;
          exist =
              centre_options(whole(rows), heads, value ? value->data() : nullptr, advantage.data(),
                             taken.data(), columns == 1, out.data(), best.data());
        }
        if (!exist) throw Fault("an option was taken that does not exist.");
      },
      "value"_a.noconvert().none(), "advantage"_a.noconvert(), "taken"_a.noconvert(),
      "bounds"_a.noconvert(), "out"_a.noconvert(), "best"_a.noconvert(),
      "Advantages of options taken relative to their head's best, and which option that is: of "
      "each head, or of all together if one number is asked for, plus a value if there is one.");
  m.def(
      "centre_options_back",
      [](Array<const float, -1, -1> grad, Array<const float, -1, -1> taken,
         Array<const std::int32_t, -1, -1> best, Bounds bounds, Array<float, -1, -1> to_advantage) {
        const std::size_t rows = to_advantage.shape(0), width = to_advantage.shape(1);
        const options::Heads heads = heads_of(bounds, width, width, kNoLimit);
        const std::size_t count = bounds.shape(0) - 1, columns = grad.shape(1);
        if (columns != 1 && columns != count) throw Fault("one number for each head, or for all.");
        need(grad, {rows, columns});
        need(taken, {rows, count});
        need(best, {rows, count});
        bool exist = true;
        {
          const nb::gil_scoped_release release;
          exist = centre_options_back(whole(rows), heads, grad.data(), columns == 1, taken.data(),
                                      best.data(), to_advantage.data());
        }
        if (!exist) throw Fault("an option was taken that does not exist.");
      },
      "grad"_a.noconvert(), "taken"_a.noconvert(), "best"_a.noconvert(), "bounds"_a.noconvert(),
      "to_advantage"_a.noconvert(), "The gradient of centred advantages by all of them.");
}

}  // namespace headwise
