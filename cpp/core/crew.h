// Threads that stay for the next call, for work on the matrices of a stack: each is done by one
// thread from beginning to end, so results do not depend on how many there are.
#pragma once

#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "core/thread_pool.h"

namespace headwise {

class Crew {
 public:
  // Calls work(i) for each i in [0, count) on at most `threads` threads. If someone else is at it,
  // the caller does everything itself.
  void each(int count, int threads, const std::function<void(int)>& work) {
    const std::unique_lock<std::mutex> lock(busy_, std::try_to_lock);
    const int most = threads < count ? threads : count;
    if (most <= 1 || !lock.owns_lock()) {
      for (int i = 0; i < count; ++i) work(i);
      return;
    }
    if (!pool_ || threads_ != most || owner_ != getpid()) {
      threads_ = most;
      owner_ = getpid();
      pool_ = std::make_unique<ThreadPool>(most, most, [this](int, int) { take_turns(); });
    }
    work_ = &work;
    count_ = count;
    next_.store(0);
    pool_->run();
  }

 private:
  void take_turns() {
    for (int i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1)) (*work_)(i);
  }

  std::mutex busy_;
  std::unique_ptr<ThreadPool> pool_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<int> next_{0};
  int count_ = 0, threads_ = 0;
  pid_t owner_ = 0;
};

}  // namespace headwise
