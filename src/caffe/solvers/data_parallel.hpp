// DataParallel: what one of several solvers does together with the others.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/gradient_reducer.hpp"
#include "caffe/graph/sums_over_ranks.hpp"
#include "caffe/net.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// Without a communicator, or with one of a single rank, nothing is changed and nothing waits. All
// ranks make the same calls in the same order.
class DataParallel {
 public:
  DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace);

  int rank() const { return ranks_ == 1 ? 0 : communicator_->rank(); }
  int ranks() const { return ranks_; }
  bool is_root() const { return rank() == 0; }

  // The net whose gradients are reduced; called once.
  void Attach(Net& net, int reduce_buckets);

  // Whether all ranks are making the same passes of that net, so that its layers sum over the
  // ranks. Else a pass, which other ranks may not make, has the rank's own numbers. At first not.
  void LetLayersSum(bool do_sum);

  // Around the last backward pass of a step, whose gradients are reduced as they become final.
  class Reduction {
   public:
    explicit Reduction(DataParallel& parallel);
    // Where the pass failed, gives up the reduction; its gradients are of no use.
    ~Reduction();
    Reduction(const Reduction&) = delete;
    Reduction& operator=(const Reduction&) = delete;

    // For the pass; null where there is nothing to reduce.
    const Executor::GradientListener* listener() const {
      return parallel_.ranks_ == 1 ? nullptr : &listener_;
    }
    // After the pass: gradients and running statistics become the mean of all ranks'. Throws what
    // went wrong on any rank.
    void Finish();

   private:
    DataParallel& parallel_;
    Executor::GradientListener listener_;
    bool is_finished_ = false;
  };

  // The mean over all ranks.
  double Mean(double number);
  // What rank 0 says.
  int OfRoot(int number);
  // Each batch's numbers come from one rank, which has them here; the others have nothing, and get
  // them.
  void Share(std::vector<std::vector<double>>* batches);

 private:
  void ReduceStatistics();
  // For as long as the result lives: this rank waits for the others. `what` goes on with its name.
  Activity WaitForOthers(const char* what) const;

  std::shared_ptr<Communicator> communicator_;
  int ranks_ = 1;
  const std::string name_;
  Trace* trace_ = nullptr;
  std::shared_ptr<Device> device_;
  std::unordered_map<const SyncedTensor*, size_t> index_;  // of gradients in the reducer
  std::vector<SyncedTensor*> statistics_;
  std::vector<SumsOverRanks*> summing_layers_;
  std::optional<GradientReducer> reducer_;
};

}  // namespace caffe
