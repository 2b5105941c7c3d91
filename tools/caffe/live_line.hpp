// LiveLine: how far training is, in one line of a terminal.
#pragma once

#include <chrono>
#include <string>

#include "caffe/training_observer.hpp"
#include "tools/caffe/terminal.hpp"

namespace caffe::tools {

// Shows nothing without a terminal.
class LiveLine final : public TrainingObserver {
 public:
  LiveLine() : terminal_(Terminal::Get()) {}
  ~LiveLine() override { Show(""); }
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  void OnStart(const TrainingStart& start) override;
  void OnIteration(const IterationReport& report) override;
  void OnEnd(const TrainingEnd&) override { Show(""); }

 private:
  using Clock = std::chrono::steady_clock;

  void Show(const std::string& text) {
    if (terminal_ != nullptr) terminal_->Show(text);
  }
  void Average(const TrainingSpeed& speed);
  std::string Text(const IterationReport& report, Clock::time_point now) const;

  Terminal* const terminal_;
  TrainingStart start_;
  Clock::time_point began_, shown_;
  TrainingSpeed recent_;
};

}  // namespace caffe::tools
