// Drives every environment, and a learner's operations, on their threads without Python, for
// ThreadSanitizer: many short steps, so that threads are caught spinning, asleep and late; results
// compared between thread counts.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/registry.h"
#include "environments.h"
#include "ops/adam.h"
#include "ops/network.h"

namespace headwise {
namespace {

// The arrays of a vector environment, and a way to fill in actions.
struct Arrays {
  explicit Arrays(const VecEnvBase& env)
      : choices(rows(env, env.num_choices())),
        lengths(rows(env, 1)),
        ranges(rows(env, env.num_ranges())),
        obs(rows(env, env.obs_size())),
        next_obs(rows(env, env.obs_size())),
        reward(rows(env, 1)),
        returns(rows(env, 1)),
        terminated(new bool[rows(env, 1)]()),
        truncated(new bool[rows(env, 1)]()) {}

  static std::size_t rows(const VecEnvBase& env, int columns) {
    return static_cast<std::size_t>(env.num_envs()) * static_cast<std::size_t>(columns);
  }
  [[nodiscard]] Buffers buffers() {
    return {choices.data(),   ranges.data(),   obs.data(),     next_obs.data(), reward.data(),
            terminated.get(), truncated.get(), returns.data(), lengths.data()};
  }
  void act(const VecEnvBase& env, std::uint32_t step) {
    std::size_t c = 0, r = 0;
    for (int n = 0; n < env.num_envs(); ++n) {
      for (const Head& head : env.heads()) {
        const std::uint32_t word = philox({static_cast<std::uint32_t>(c + r), step, 77, 0}, 5)[0];
        if (head.options > 0) {
          choices[c++] = below(word, head.options);
        } else {
          ranges[r++] = std::min(head.low + uniform(word) * (head.high - head.low), head.high);
        }
      }
    }
  }

  std::vector<std::int32_t> choices, lengths;
  std::vector<float> ranges, obs, next_obs, reward, returns;
  std::unique_ptr<bool[]> terminated, truncated;
};

std::string play(const Kind& kind, int num_envs, int num_threads, Autoreset autoreset, int steps) {
  const std::unique_ptr<VecEnvBase> made =
      kind.draft()->make(num_envs, std::nullopt, autoreset, num_threads);
  VecEnvBase& env = *made;
  Arrays arrays(env);
  env.attach(arrays.buffers());
  const std::vector<std::uint64_t> seeds(static_cast<std::size_t>(num_envs), 9);
  std::vector<std::uint32_t> lanes(static_cast<std::size_t>(num_envs));
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = static_cast<std::uint32_t>(i);
  env.seed(seeds, lanes, nullptr);
  env.reset(nullptr);
  std::string seen;
  for (int step = 0; step < steps; ++step) {
    arrays.act(env, static_cast<std::uint32_t>(step));
    env.step();
    for (const float reward : arrays.reward) seen += std::to_string(reward);
    if (step % 50 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));  // let the threads fall asleep
      env.restore(env.snapshot());
    }
  }
  return seen + env.snapshot();
}

void compare(const Kind& kind, int num_envs, int steps) {
  for (const Autoreset autoreset : {Autoreset::kSameStep, Autoreset::kNextStep}) {
    const std::string alone = play(kind, num_envs, 1, autoreset, steps);
    for (const int num_threads : {2, 3, 4}) {
      if (play(kind, num_envs, num_threads, autoreset, steps) != alone) {
        std::fprintf(stderr, "%s differs with %d threads\n", kind.name.c_str(), num_threads);
        std::exit(1);
      }
    }
  }
  std::printf("%s: the same with 1 to 4 threads\n", kind.name.c_str());
}

}  // namespace

namespace ops {
namespace {

// Five members' network learns to give back what it sees; the parameters after that.
std::vector<float> learned(int threads, int times) {
  constexpr int kMembers = 5, kRows = 24, kInputs = 7;
  const Buffer x(kMembers, 1, kRows, kInputs, kInputs, true);
  auto net = std::make_shared<Network>(std::vector{kInputs}, std::vector{33, kInputs},
                                       std::vector{Activation::kTanh, Activation::kLinear},
                                       kMembers, kRows, 1, std::vector<std::vector<Runs>>{});
  const int size = static_cast<int>(net->size());
  const Buffer parameters(kMembers, 1, 1, size, size, true);
  net->place(parameters);
  for (int p = 0; p < kMembers; ++p) {
    for (int i = 0; i < size; ++i) parameters.at(p)[i] = std::sin(static_cast<float>(i * (p + 1)));
    for (int i = 0; i < kRows * kInputs; ++i) x.at(p)[i] = std::cos(static_cast<float>(i + p));
  }
  const auto made = [](int columns) { return Buffer(kMembers, 1, 1, columns, columns, false); };
  const Buffer rate = made(1), alive = made(1);
  for (int p = 0; p < kMembers; ++p) *rate.at(p) = 1e-3f, *alive.at(p) = 1.0f;
  const Adam adam{parameters, made(size), made(size), made(2), rate,       alive, made(1),
                  0.9f,       0.999f,     1e-8f,      1.0f,    made(size), 0.01f};
  Program program;
  recording = &program;
  Network::forward(net, {x}, {}, 0, false);
  const Buffer out = net->layer(1);
  emit(kMembers, [x, out](int p) {
    for (int b = 0; b < kRows; ++b) {
      for (int i = 0; i < kInputs; ++i) {
        out.gradient_row(p, 0, b)[i] = out.row(p, 0, b)[i] - x.row(p, 0, b)[i];
      }
    }
  });
  Network::backward(net, {x}, {}, true, false, false);
  adam_step(adam);
  recording = nullptr;
  for (int i = 0; i < times; ++i) program.run(1 + i % 3, threads);
  std::vector<float> result;
  for (int p = 0; p < kMembers; ++p) {
    result.insert(result.end(), parameters.at(p), parameters.at(p) + size);
    result.insert(result.end(), adam.follower.at(p), adam.follower.at(p) + size);
  }
  return result;
}

void compare(int times) {
  const std::vector<float> alone = learned(1, times);
  for (const int threads : {2, 3, 5, 8}) {
    if (learned(threads, times) != alone) {
      std::fprintf(stderr, "a learner differs with %d threads\n", threads);
      std::exit(1);
    }
  }
  std::puts("a learner's operations: the same with 1 to 8 threads");
}

}  // namespace
}  // namespace ops
}  // namespace headwise

int main() {
  using namespace headwise;
  for (const Kind& kind : kinds()) {
    compare(kind, 200, 150);
    // Environments that come and go, some without ever being stepped.
    for (int i = 0; i < 40; ++i) (void)play(kind, 250, 4, Autoreset::kSameStep, i % 4);
  }
  std::puts("environments that come and go: fine");
  ops::compare(300);
}
