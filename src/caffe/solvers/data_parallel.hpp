// DataParallel: what one of several solvers does together with the others.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "caffe/core/activity.hpp"
#include "caffe/core/fork.hpp"
#include "caffe/distributed/communicator.hpp"
#include "caffe/distributed/gradient_reducer.hpp"
#include "caffe/graph/sums_over_ranks.hpp"
#include "caffe/net.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan/executor.hpp"
#include "caffe/solvers/agreement.hpp"
#include "caffe/solvers/statistics_blocks.hpp"

namespace caffe {

// Without a communicator, or with one of a single rank, nothing is changed and nothing waits. All
// ranks make the same calls in the same order.
class DataParallel {
 public:
  DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace);

  int rank() const { return ranks_ == 1 ? 0 : communicator_->rank(); }
  int ranks() const { return ranks_; }
  bool is_root() const { return rank() == 0; }
  // Whether it is the first of this process, and whether others are in other processes.
  bool leads_process() const {
    return ranks_ == 1 || rank() % communicator_->ranks_in_process() == 0;
  }
  bool spans_processes() const { return ranks_ > 1 && communicator_->ranks_in_process() < ranks_; }

  // The net whose gradients are reduced; called once.
  // Throws InvalidArgument where its reduce_buckets or reduce_type is none.
  void Attach(Net& net);

  // Whether all ranks are making the same passes of that net, so that its layers sum over the
  // ranks. Else a pass, which other ranks may not make, has the rank's own numbers, and layers that
  // are split over ranks refuse it. At first not.
  void LetLayersSum(bool do_sum);

  // The gradients that are reduced as one, in order. After Attach().
  std::vector<std::vector<SyncedTensor*>> Buckets() const {
    return ranks_ == 1 ? std::vector<std::vector<SyncedTensor*>>() : reducer_->bucket_gradients();
  }
  // Whether the last step's buckets have begun to be updated.
  bool has_updated() const { return ranks_ > 1 && reducer_->has_updated(); }

  // Around the last pass of a step, whose gradients are reduced as they become final.
  class Reduction {
   public:
    // `update`, unless it is empty, updates the parameters of a bucket, in this thread or another,
    // while backward goes on. On the CPU only; not where the mean loss is not a number.
    Reduction(DataParallel& parallel, GradientReducer::Update update);
    // Where the pass failed, gives up the reduction; its gradients are of no use.
    ~Reduction();
    Reduction(const Reduction&) = delete;
    Reduction& operator=(const Reduction&) = delete;

    // For the pass; null where there is nothing to reduce.
    const Executor::GradientListener* listener() const {
      return parallel_.ranks_ == 1 ? nullptr : &listener_;
    }
    // Before backward, where the loss is known by then: all ranks' is found beside the pass.
    void TakeLoss(double loss);
    // After the pass: gradients and running statistics become the mean of all ranks', and all
    // buckets are updated. Returns the mean of the losses. Throws what went wrong on any rank.
    double Finish(double loss);

   private:
    bool HoldsBack() const;
    void TakeFinal(const SyncedTensor& gradient);
    void GatherStatistics();

    DataParallel& parallel_;
    Executor::GradientListener listener_;
    std::vector<const SyncedTensor*> held_back_;  // final, and not reduced yet
    bool has_statistics_ = false;                 // on their way
    bool is_finished_ = false;
  };

  // After each iteration. Every 100 of them, on rank 0, a line about the time that its iterations
  // took and that they waited for reductions after their own backward pass; else empty.
  std::string ReportWaits(int iteration);

  // The mean over all ranks.
  double Mean(double number);
  // Each number becomes the sum of all ranks'.
  void Sum(std::span<double> numbers);
  // What rank 0 says.
  std::string OfRoot(const std::string& text);
  // The text of the first rank that has one; empty where none has.
  std::string FirstText(const std::string& text);
  // In the thread that computes: its share of the processor's threads, when several processes of
  // this machine train together.
  void UseShareOfThreads() const;
  // See CheckAgreement(); where all ranks are in one process, they are alike by construction.
  void Agree(const std::vector<Fact>& facts);
  // Each rank has its own part of the parameter in the tensor, and gets those of the others.
  void GatherParts(const SplitParam& param, SyncedTensor* tensor);
  // The values of rank 0; whether this rank had others.
  bool TakeFromRoot(const std::vector<SyncedTensor*>& tensors);
  // Each batch's numbers come from one rank, which has them here; the others have nothing, and get
  // them.
  void Share(std::vector<std::vector<double>>* batches);

 private:
  // In these a GPU's ranks wait for each other before any reduces.
  bool IsFirstReduction() const {
    constexpr int kFirst = 3;  // its pass loads code, makes recordings, runs them
    return reductions_ < kFirst && !device_->is_host_accessible();
  }
  void MakeStatistics(Net& net);
  void ReduceWrittenWeights();
  std::optional<size_t> IndexOf(const SyncedTensor& gradient) const;
  // For as long as the result lives: this rank waits for the others. `what` goes on with its name.
  Activity WaitForOthers(const char* what) const;

  std::shared_ptr<Communicator> communicator_;
  int ranks_ = 1;
  int threads_ = 0;  // 0: as they are
  const std::string name_;
  Trace* trace_ = nullptr;
  std::optional<TrainingNet> net_;
  std::shared_ptr<Device> device_;
  int reductions_ = 0;                                     // that are done
  std::unordered_map<const SyncedTensor*, size_t> index_;  // of gradients in the reducer
  std::optional<StatisticsBlocks> statistics_;
  // Parameters that the solver updates and that forward passes may write, too: those of layers
  // whose code does not say (written for Caffe).
  std::optional<StatisticsBlocks> written_weights_;
  std::vector<SumsOverRanks*> summing_layers_;
  RankExchange* exchange_ = nullptr;
  ThreadedPtr<GradientReducer> reducer_;
  // Since the last line of ReportWaits().
  int iterations_ = 0;
  std::chrono::steady_clock::time_point begin_ = {};
  std::chrono::duration<double> waited_ = {};
};

}  // namespace caffe
