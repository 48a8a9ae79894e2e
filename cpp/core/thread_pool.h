// A few threads that split a range into equal parts. Part i is always the same, and belongs to
// thread i, so that its data stays in that core's cache; but a thread that is slow to wake is not
// waited for: the caller takes over whatever part nobody has begun. Results never depend on timing.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace headwise {

class ThreadPool {
 public:
  // Calls part(begin, end) on the parts of [0, size), one for each thread. Where the system grants
  // no more threads, those that there are do all the parts.
  ThreadPool(int num_threads, int size, std::function<void(int, int)> part)
      : owner_(getpid()), size_(size), part_(std::move(part)), begun_(num_threads) {
    workers_->reserve(begun_.size());  // so that nothing but a thread can be refused below
    try {
      for (int i = 1; i < num_threads; ++i) {
        workers_->emplace_back([this, i] { work(i); });
      }
    } catch (const std::exception&) {  // no more of them, or no memory for their stacks
    }
  }
  ~ThreadPool() {
    if (getpid() != owner_) {
      // After a fork the threads are the parent's, and what their handles point to may by now be
      // a thread of this process: they must not even be detached, so they are left alone for good.
      (void)workers_.release();
      return;
    }
    stop_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    for (auto& worker : *workers_) worker.join();
  }
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  void run() {
    if (workers_->empty() || getpid() != owner_) {
      part_(0, size_);
      return;
    }
    const int parts = static_cast<int>(begun_.size());
    pending_.store(parts);
    const std::uint32_t round = round_.fetch_add(1) + 1;
    round_.notify_all();
    for (int i = 0; i < parts; ++i) take(i, round);
    for (int left = spin_while(pending_, [](int n) { return n != 0; }); left != 0;
         left = pending_.load()) {
      pending_.wait(left);
    }
  }

 private:
  // Does part i of this round, unless someone has begun it.
  void take(int i, std::uint32_t round) {
    std::uint32_t last = round - 1;
    if (!begun_[static_cast<std::size_t>(i)].value.compare_exchange_strong(last, round)) return;
    const auto parts = static_cast<std::int64_t>(begun_.size());
    part_(static_cast<int>(size_ * std::int64_t{i} / parts),
          static_cast<int>(size_ * (std::int64_t{i} + 1) / parts));
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }

  void work(int i) {
    for (std::uint32_t seen = 0;;) {
      spin_while(round_, [seen](std::uint32_t round) { return round == seen; });
      round_.wait(seen);
      seen = round_.load();
      if (stop_) return;
      take(i, seen);
    }
  }

  // Waking takes tens of microseconds, so a thread looks out for its next turn for a while before
  // it goes to sleep.
  template <class T, class F>
  static T spin_while(const std::atomic<T>& value, F&& unchanged) {
    T now = value.load();
    for (int i = 0; i < 2000 && unchanged(now); ++i) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
      now = value.load();
    }
    return now;
  }

  struct alignas(64) Round {
    std::atomic<std::uint32_t> value{0};
  };

  const pid_t owner_;
  const int size_;
  const std::function<void(int, int)> part_;
  std::vector<Round> begun_;  // the last round in which each part was begun
  std::unique_ptr<std::vector<std::thread>> workers_ = std::make_unique<std::vector<std::thread>>();
  std::atomic<std::uint32_t> round_{0};
  std::atomic<int> pending_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace headwise
