// WeightAverage: an exponential moving average of the learnable parameters.
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
// replaces them in tests and weights files. Running statistics are not averaged and always keep
// their current values.
//
// It starts with the parameters before its first update; until then it equals them. The average and
// the saved parameters are in device memory, two tensors per parameter.
class WeightAverage {
 public:
  // `parameters` are some of the net's. `is_decided`: updates have a decision. The net must outlive
  // this object.
  WeightAverage(const TrainingNet& net, const std::vector<Net::LearnableParam>& parameters,
                double decay, bool is_decided);

  // Called before an update: finds the parameters' memory. Returns true if it has moved.
  bool Bind();
  // Called after an update on the stream; the arguments are that update's operands, see
  // ops::AverageAll. Only launches.
  void Launch(const TensorView& step, const TensorView& state, const TensorView& decision,
              Stream& stream);

  bool has_begun() const { return has_begun_; }
  // Takes the current parameters as the average of `updates` updates; the run has skipped
  // `skipped_steps` updates so far.
  void Begin(double updates, double skipped_steps);
  // Starts again with the next update.
  void Reset() { has_begun_ = false; }
  // The value of ops::kAverageCount for the next update.
  double NextCount() { return ++count_; }
  // Number of updates in the average, given the number of skipped updates of the run.
  int updates(double skipped_steps) const { return static_cast<int>(count_ - skipped_steps); }

  // While an instance exists, the net's parameters are the average; does nothing if `average` is
  // null or has not begun. A nested Shown requires a Hidden in between.
  class Shown {
   public:
    explicit Shown(WeightAverage* average);
    ~Shown();
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    WeightAverage* const average_;
  };
  // While an instance exists within a Shown, the net has the parameters themselves.
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
  double count_ = 0;  // updates plus skipped updates
  bool has_begun_ = false, is_shown_ = false;
};

// Host copies of the net's learnable parameters, in its order.
std::vector<std::shared_ptr<Blob>> CopiesOfParameters(const Net& net);

}  // namespace caffe
