// TrainingProgress: collects a solver's progress and tells the observers.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "caffe/core/clock.hpp"
#include "caffe/data_supply.hpp"
#include "caffe/net.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

// All values of the net's outputs.
std::vector<OutputReport> OutputsOf(const Net& net);

// Single-threaded. The loss and learning rate of an iteration arrive separately, in any order;
// observers are called when both are known.
class TrainingProgress {
 public:
  // `passes`: forward passes of all workers in one iteration; they share the records of an epoch.
  // The net must outlive this object.
  TrainingProgress(const Net& net, int passes, Clock& clock = Clock::Steady());

  void Add(TrainingObserver* observer) { observers_.push_back(observer); }
  void Remove(TrainingObserver* observer) { std::erase(observers_, observer); }

  void Start(const TrainingStart& start);
  void End(const TrainingEnd& end);
  void Display(int iteration, float smoothed_loss);
  void TakeLoss(int iteration, float loss, float smoothed_loss);
  void TakeRate(int iteration, double rate, std::optional<double> gradient_scale, bool displayed,
                const StepReport& measured = {});
  void Report(const TestReport& test);
  void Report(const SnapshotReport& snapshot);

  // While an instance exists, time does not count as training.
  class Pause {
   public:
    explicit Pause(TrainingProgress& progress) : progress_(progress) {}
    ~Pause() { progress_.last_report_ += progress_.clock_.Now() - begin_; }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    TrainingProgress& progress_;
    const Clock::TimePoint begin_ = progress_.clock_.Now();
  };

 private:
  struct Pending {
    IterationReport report;
    bool has_loss = false, has_rate = false;
  };

  Pending& Find(int iteration);
  void ReportComplete();
  void Measure(IterationReport* report);
  std::optional<double> Epoch() const;
  std::optional<double> DataWaitSeconds() const;

  const Net& net_;
  const int passes_;
  Clock& clock_;
  const Layer* source_ = nullptr;  // layer whose images are counted
  std::vector<std::pair<const Layer*, const DataSupply*>> supplies_;
  std::vector<TrainingObserver*> observers_;
  std::vector<Pending> pending_;  // only few; a deque would sometimes allocate
  Clock::TimePoint last_report_ = clock_.Now(), last_display_ = last_report_;
  std::optional<double> last_wait_;
  int last_display_iteration_ = 0;
};

}  // namespace caffe
