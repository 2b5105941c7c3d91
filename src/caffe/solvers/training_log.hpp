// TrainingLog: logs the progress of training in Caffe's words, which other programs look for.
#pragma once

#include "caffe/training_observer.hpp"

namespace caffe {

struct TrainingLogOptions {
  int display = 0;  // iterations between displays
  bool test_loss = false;
  bool per_class = false;  // log the average precision of each class
};

class TrainingLog final : public TrainingObserver {
 public:
  explicit TrainingLog(const TrainingLogOptions& options) : options_(options) {}

  void OnDisplay(const DisplayReport& report) override;
  void OnIteration(const IterationReport& report) override;
  void OnTest(const TestReport& report) override;

 private:
  const TrainingLogOptions options_;
};

}  // namespace caffe
