// ThreadClaim: detects that two threads use an object that serves one thread at a time.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "caffe/error.hpp"

namespace caffe {

// Not a lock: the second thread gets an error, because its results would be wrong even if it waited
// (another thread's inputs, half of its outputs).
class ThreadClaim {
 public:
  // Throws InvalidArgument while another Scope exists: "net 'x' is running in another thread ...".
  class Scope {
   public:
    Scope(ThreadClaim& claim, const char* what, const std::string& name) : claim_(claim) {
      std::thread::id owner;
      if (claim_.owner_.compare_exchange_strong(owner, std::this_thread::get_id())) return;
      Require(owner != std::this_thread::get_id(), what, " '", name,
              "' is running: what it calls back cannot run or change it");
      throw InvalidArgument(StrCat(what, " '", name, "'", kElsewhere));
    }
    ~Scope() { claim_.owner_ = std::thread::id(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    ThreadClaim& claim_;
  };

  // For calls that are allowed only in the owner's thread, as in its callbacks. `what` names the
  // claimed object in the message.
  void CheckNotElsewhere(const char* what) const {
    const std::thread::id owner = owner_.load(std::memory_order_relaxed);
    if (owner == std::thread::id() || owner == std::this_thread::get_id()) return;
    throw InvalidArgument(StrCat("the ", what, kElsewhere));
  }

  // For calls that are not even allowed in the owner's callbacks.
  void CheckIdle(const char* what) const {
    CheckNotElsewhere(what);
    Require(owner_.load(std::memory_order_relaxed) == std::thread::id(), "the ", what,
            " is running: what it calls back cannot change it");
  }

 private:
  static constexpr const char* kElsewhere =
      " is running in another thread; use one per thread (they can share weights), or a lock "
      "around setting inputs, running and reading results";

  std::atomic<std::thread::id> owner_{};
};

}  // namespace caffe
