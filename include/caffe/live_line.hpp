// LiveLine: shows training progress in one line of a terminal below the log.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/training_observer.hpp"

namespace caffe {

class Terminal;

// Shows iteration, loss, time left, images per second, epoch, rate and the share of time spent
// waiting for data, at most ten times a second, on standard error:
//
//   LiveLine line;
//   solver.AddObserver(&line);
//
// Does nothing if standard error is not a terminal. Otherwise glog's lines are printed above it.
class CAFFE_EXPORT LiveLine final : public TrainingObserver {
 public:
  LiveLine();
  ~LiveLine() override;
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void OnStart(const TrainingStart& start) override;
  void OnIteration(const IterationReport& report) override;
  void OnEnd(const TrainingEnd& end) override;

 private:
  using Clock = std::chrono::steady_clock;

  void Show(const std::vector<std::string>& items);
  void Average(const TrainingSpeed& speed);
  std::vector<std::string> Items(const IterationReport& report, Clock::time_point now) const;

  Terminal* const terminal_;
  TrainingStart start_;
  Clock::time_point began_, shown_;
  TrainingSpeed recent_;
};

}  // namespace caffe
