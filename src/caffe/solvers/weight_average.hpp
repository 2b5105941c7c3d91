// WeightAverage: an exponential moving average of the parameters that learn.
#pragma once

#include <memory>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/solvers/statistics_blocks.hpp"

namespace caffe {

// Follows the parameters after each update (Polyak and Juditsky 1992; see ops::AverageAll), and
// takes their place for tests and in weights files. Running statistics are no part of it: whoever
// looks at the average sees them as they are.
//
// It begins with the parameters as they are before its first update: until then it is they. The
// average and the parameters that it stands in for lie in the device's memory, two tensors for each
// parameter.
class WeightAverage {
 public:
  // Of `parameters`, some of the net's. `is_decided`: updates have a decision. The net outlives
  // this.
  WeightAverage(const TrainingNet& net, const std::vector<Net::LearnableParam>& parameters,
                double decay, bool is_decided);

  // Before an update: finds the parameters' memory. Whether it lies elsewhere than before.
  bool Bind();
  // After an update on the stream, whose operands these are; see ops::AverageAll. Launches only.
  void Launch(const TensorView& step, const TensorView& state, const TensorView& decision,
              Stream& stream);

  bool has_begun() const { return has_begun_; }
  // The parameters, as they are, are the average of so many updates; the run has skipped so many
  // steps until now.
  void Begin(double updates, double skipped_steps);
  // It begins with the next update.
  void Reset() { has_begun_ = false; }
  // For ops::kAverageCount of the next update.
  double NextCount() { return ++count_; }
  // Updates that it has followed, where the run has skipped so many steps.
  int updates(double skipped_steps) const { return static_cast<int>(count_ - skipped_steps); }

  // While one of these lives, the net's parameters are the average; nothing where none is given or
  // it has not begun. One in another needs a Hidden between them.
  class Shown {
   public:
    explicit Shown(WeightAverage* average);
    ~Shown();
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    WeightAverage* const average_;
  };
  // While one of these lives within a Shown, the parameters are themselves again.
  class Hidden {
   public:
    explicit Hidden(WeightAverage* average);
    ~Hidden();
    Hidden(const Hidden&) = delete;
    Hidden& operator=(const Hidden&) = delete;

   private:
    WeightAverage* const average_;
  };

 private:
  StatisticsBlocks average_, kept_;
  std::vector<TensorView> inputs_;  // parameters, step, state, decision
  Kernel kernel_;
  double count_ = 0;  // of updates and skipped steps
  bool has_begun_ = false, is_shown_ = false;
};

// Host copies of the net's learnable parameters, in its order.
std::vector<std::shared_ptr<Blob>> CopiesOfParameters(const Net& net);

}  // namespace caffe
