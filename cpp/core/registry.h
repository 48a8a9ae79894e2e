// The list of environments. A header in envs/ ends with HEADWISE_ENV(X) and is thereby in the list:
// CMake includes every header that lies there, and nothing else names them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/vec_env.h"

namespace headwise {

// An environment before it is made: its settings can be written until `make`.
class Draft {
 public:
  virtual ~Draft() = default;
  [[nodiscard]] virtual std::vector<Setting> settings() = 0;
  [[nodiscard]] virtual std::string check() const = 0;
  [[nodiscard]] virtual std::unique_ptr<VecEnvBase> make(int num_envs,
                                                         std::optional<int> time_limit,
                                                         Autoreset autoreset, int num_threads) = 0;
};

template <Env E>
class DraftOf final : public Draft {
 public:
  std::vector<Setting> settings() override { return params_.settings(); }
  [[nodiscard]] std::string check() const override { return params_.check(); }
  std::unique_ptr<VecEnvBase> make(int num_envs, std::optional<int> time_limit, Autoreset autoreset,
                                   int num_threads) override {
    params_.prepare();
    const int limit = time_limit.value_or(E::time_limit(params_));
    return std::make_unique<VecEnv<E>>(num_envs, std::move(params_), limit, autoreset, num_threads);
  }

 private:
  typename E::Params params_;
};

struct Kind {
  std::string name;
  std::unique_ptr<Draft> (*draft)();
};

[[nodiscard]] inline std::vector<Kind>& kinds() {
  static std::vector<Kind> list;
  return list;
}

template <Env E>
struct Registrar {
  Registrar() {
    kinds().push_back(
        {E::kName, []() -> std::unique_ptr<Draft> { return std::make_unique<DraftOf<E>>(); }});
  }
};

}  // namespace headwise

#define HEADWISE_ENV(E)                            \
  namespace headwise {                             \
  inline const Registrar<E> registrar_of_##E##_{}; \
  }
