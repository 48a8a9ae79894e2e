// Drives the environments and their threads without Python, for ThreadSanitizer: many short steps,
// so that threads are caught spinning, asleep and late; results compared between thread counts.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/vec_env.h"
#include "envs/contextual_decoupler.h"
#include "envs/coop_push.h"
#include "envs/hybrid_shoot.h"
#include "envs/platform.h"

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

template <class E>
std::string play(int num_envs, int num_threads, Autoreset autoreset, int steps) {
  typename E::Params params;
  params.prepare();
  VecEnv<E> env(num_envs, params, E::time_limit(params), autoreset, num_threads);
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

template <class E>
void compare(int num_envs, int steps) {
  for (const Autoreset autoreset : {Autoreset::kSameStep, Autoreset::kNextStep}) {
    const std::string alone = play<E>(num_envs, 1, autoreset, steps);
    for (const int num_threads : {2, 3, 4}) {
      if (play<E>(num_envs, num_threads, autoreset, steps) != alone) {
        std::fprintf(stderr, "%s differs with %d threads\n", E::kName, num_threads);
        std::exit(1);
      }
    }
  }
  std::printf("%s: the same with 1 to 4 threads\n", E::kName);
}

}  // namespace
}  // namespace headwise

int main() {
  using namespace headwise;
  compare<ContextualDecoupler>(500, 400);
  compare<Platform>(50, 150);
  compare<HybridShoot>(500, 300);
  compare<CoopPush>(200, 200);
  // Environments that come and go, some without ever being stepped.
  for (int i = 0; i < 200; ++i) (void)play<HybridShoot>(250, 4, Autoreset::kSameStep, i % 4);
  std::puts("environments that come and go: fine");
}
