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

// One thing that a program does: a function of each member, or one for all of them, which may be
// Python's.
struct Step {
  int members = 0;
  std::function<void(int)> of_member;
  std::function<void()> of_all;
  bool is_python = false;
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
    has_python_ = has_python_ || step.is_python;
    in_step_ = in_step_ || step.of_all;
    steps_.push_back(std::move(step));
  }
  [[nodiscard]] std::size_t size() const { return steps_.size(); }
  [[nodiscard]] bool has_python() const { return has_python_; }

  // Runs everything so many times. Nothing crosses members but what is for all of them: up to
  // there each goes by itself, on a thread of its own if there are several, and without any such
  // step through all rounds.
  void run(int times, int threads) {
    const int rounds = in_step_ ? times : std::min(times, 1), each = in_step_ ? 1 : times;
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t first = 0, end; first < steps_.size(); first = end) {
        end = first + 1;
        if (steps_[first].of_all) {
          steps_[first].of_all();
          continue;
        }
        while (end < steps_.size() && !steps_[end].of_all) ++end;
        for_members(threads, [this, first, end, each](int p) {
          for (int time = 0; time < each; ++time) {
            for (std::size_t i = first; i < end; ++i) {
              if (p < steps_[i].members) steps_[i].of_member(p);
            }
          }
        });
      }
    }
  }

  // Runs everything once for one member; the others stay as they are.
  void run_member(int member) {
    for (const Step& step : steps_) {
      if (step.of_all) {
        step.of_all();
      } else if (member < step.members) {
        step.of_member(member);
      }
    }
  }

 private:
  template <class F>
  void for_members(int threads, const F& member) {
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
    const std::function<void(int)> job = std::cref(member);
    job_ = &job;
    pool_->run();
    job_ = nullptr;
  }

  std::vector<Step> steps_;
  int members_ = 0;
  bool has_python_ = false, in_step_ = false;
  std::unique_ptr<ThreadPool> pool_;
  int pool_threads_ = 0;
  const std::function<void(int)>* job_ = nullptr;
};

template <class F>
void emit(int members, F f) {
  for (int p = 0; p < members; ++p) f(p);
  if (recording != nullptr) recording->add({members, std::move(f), nullptr});
}
inline void emit_for_all(std::function<void()> f) {
  f();
  if (recording != nullptr) recording->add({0, nullptr, std::move(f)});
}
// The same for every copy of a member.
template <class F>
void emit(int members, int copies, F f) {
  emit(members, [f, copies](int p) {
    for (int c = 0; c < copies; ++c) f(p, c);
  });
}

}  // namespace headwise::ops
