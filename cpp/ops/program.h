// Operations are functions of a member. They run at once, and a program that is recording keeps
// them, to run them again from one call: what a CUDA graph is to a GPU.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/thread_pool.h"
#include "ops/buffer.h"

namespace headwise::ops {

// One thing that a program does: a function of each member, or one for all of them that is not
// compiled (it is Python's).
struct Step {
  int members = 0;
  std::function<void(int)> of_member;
  std::function<void()> of_all;
};

class Program;
// The program that is recording on this thread, if any.
inline thread_local Program* recording = nullptr;

class Program {
 public:
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (recording == this) recording = nullptr;
  }
  void add(Step step) {
    members_ = std::max(members_, step.members);
    has_python_ = has_python_ || step.of_all;
    steps_.push_back(std::move(step));
  }
  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  [[nodiscard]] bool has_python() const { return has_python_; }

  // Runs everything so many times. Nothing crosses members, so where all steps are compiled each
  // member goes through all rounds by itself, on a thread of its own if there are several.
  void run(int times, int threads) {
    if (has_python_) {
      for (int round = 0; round < times; ++round) {
        for (const Step& step : steps_) {
          if (step.of_all) {
            step.of_all();
          } else {
            for (int p = 0; p < step.members; ++p) step.of_member(p);
          }
        }
      }
      return;
    }
    const auto member = [&](int p) {
      for (int round = 0; round < times; ++round) {
        for (const Step& step : steps_) {
          if (p < step.members) step.of_member(p);
        }
      }
    };
    if (std::min(threads, members_) <= 1) {
      for (int p = 0; p < members_; ++p) member(p);
      return;
    }
    if (!pool_ || threads != pool_threads_) {
      pool_threads_ = threads;
      pool_ = std::make_unique<ThreadPool>(std::min(threads, members_), members_,
                                           [this](int begin, int end) {
                                             for (int p = begin; p < end; ++p) (*job_)(p);
                                           });
    }
    const std::function<void(int)> job = member;
    job_ = &job;
    pool_->run();
    job_ = nullptr;
  }

 private:
  std::vector<Step> steps_;
  int members_ = 0;
  bool has_python_ = false;
  std::unique_ptr<ThreadPool> pool_;
  int pool_threads_ = 0;
  const std::function<void(int)>* job_ = nullptr;
};

template <class F>
void emit(int members, F f) {
  for (int p = 0; p < members; ++p) f(p);
  if (recording != nullptr) recording->add({members, std::move(f), nullptr});
}
// The same for every copy of a member.
template <class F>
void emit(int members, int copies, F f) {
  emit(members, [f, copies](int p) {
    for (int c = 0; c < copies; ++c) f(p, c);
  });
}

}  // namespace headwise::ops
