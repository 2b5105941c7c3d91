#include "caffe/core/clock.hpp"

namespace caffe {
namespace {

class SteadyClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::steady_clock::now(); }
  bool WaitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock,
                 TimePoint end, const std::function<bool()>& is_done) override {
    return changed.wait_until(lock, end, is_done);
  }
};

}  // namespace

Clock& Clock::Steady() {
  static SteadyClock* const clock = new SteadyClock;  // threads may outlive main()
  return *clock;
}

}  // namespace caffe
