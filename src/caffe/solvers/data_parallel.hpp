// DataParallel: the collective operations of one of several solvers that train one net.
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

// Without a communicator, or with a single rank, does nothing and never waits. All ranks must make
// the same calls in the same order.
class DataParallel {
 public:
  DataParallel(std::shared_ptr<Communicator> communicator, Trace* trace);

  int rank() const { return ranks_ == 1 ? 0 : communicator_->rank(); }
  int ranks() const { return ranks_; }
  bool is_root() const { return rank() == 0; }
  // leads_process(): true for the first rank of this process. spans_processes(): true if there are
  // ranks in other processes.
  bool leads_process() const {
    return ranks_ == 1 || rank() % communicator_->ranks_in_process() == 0;
  }
  bool spans_processes() const { return ranks_ > 1 && communicator_->ranks_in_process() < ranks_; }

  // Sets the net whose gradients are reduced; called once. Throws InvalidArgument for an invalid
  // reduce_buckets or reduce_type.
  void Attach(Net& net);

  // `do_sum`: true while all ranks run the same passes of that net, so that its layers sum over the
  // ranks. Otherwise, which is the initial state, a pass uses the rank's own numbers, because other
  // ranks may not run it, and layers that are split over ranks refuse it.
  void LetLayersSum(bool do_sum);

  // The gradients of each bucket, in the order of reduction. Only after Attach().
  std::vector<std::vector<SyncedTensor*>> Buckets() const {
    return ranks_ == 1 ? std::vector<std::vector<SyncedTensor*>>() : reducer_->bucket_gradients();
  }
  // True if the last iteration's buckets have begun to be updated.
  bool has_updated() const { return ranks_ > 1 && reducer_->has_updated(); }

  // Exists during the last pass of an iteration, whose gradients are reduced as they become final.
  class Reduction {
   public:
    // `update`, unless empty, updates the parameters of a bucket, in this thread or another, during
    // backward. Only on the CPU; not called if the mean loss is not finite.
    Reduction(DataParallel& parallel, GradientReducer::Update update);
    // Cancels the reduction if the pass failed.
    ~Reduction();
    Reduction(const Reduction&) = delete;
    Reduction& operator=(const Reduction&) = delete;

    // To be passed to the pass; null if there is nothing to reduce.
    const Executor::GradientListener* listener() const {
      return parallel_.ranks_ == 1 ? nullptr : &listener_;
    }
    // Called before backward if the loss is known by then, to average it over the ranks during the
    // pass.
    void TakeLoss(double loss);
    // Called after the pass: averages gradients and running statistics over all ranks, and
    // completes the updates of all buckets. Returns the mean of the losses. Rethrows errors of any
    // rank.
    double Finish(double loss);

   private:
    bool HoldsBack() const;
    void TakeFinal(const SyncedTensor& gradient);
    void SendStatistics();
    void GatherStatistics();

    DataParallel& parallel_;
    Executor::GradientListener listener_;
    std::vector<const SyncedTensor*> held_back_;  // final, but not reduced yet
    bool has_gathered_statistics_ = false, has_sent_statistics_ = false, has_sent_loss_ = false;
    bool is_finished_ = false;
  };

  // Called after each iteration. Every 100 iterations, returns on rank 0 a line with their time and
  // the time spent waiting for reductions after backward; otherwise returns "".
  std::string ReportWaits(int iteration);

  // Returns the mean over all ranks.
  double Mean(double number);
  // Replaces each number by its sum over all ranks.
  void Sum(std::span<double> numbers);
  // Returns when all ranks have called it.
  void AwaitAllRanks();
  // Broadcasts the text of rank 0.
  std::string BroadcastFromRoot(const std::string& text);
  // Returns the text of the first rank whose text is not empty, or "".
  std::string FirstText(const std::string& text);
  // Called in the computing thread: limits it to its share of the processor's threads if several
  // processes of this machine train together.
  void UseShareOfThreads() const;
  // See CheckAgreement(); does nothing if all ranks are in one process, where they are equal by
  // construction.
  void Agree(const std::vector<Fact>& facts);
  // Each rank's tensor contains its own part of the parameter; gathers those of the other ranks.
  void GatherParts(const SplitParam& param, SyncedTensor* tensor);
  // Copies the values from rank 0; returns true if this rank had different ones.
  bool TakeFromRoot(const std::vector<SyncedTensor*>& tensors);
  // Each batch's numbers are present on one rank and empty on the others; broadcasts them to all.
  void Share(std::vector<std::vector<double>>* batches);

 private:
  // In the first reductions, a GPU's ranks wait for each other before any rank reduces.
  bool IsFirstReduction() const {
    constexpr int kFirst = 3;  // its pass loads code, captures graphs, runs them
    return reductions_ < kFirst && !device_->is_host_accessible();
  }
  void MakeStatistics(Net& net);
  void ReduceWrittenWeights();
  // Returns the time that it took.
  std::chrono::duration<double> SumDuringReduction(std::span<double> numbers);
  std::optional<size_t> IndexOf(const SyncedTensor& gradient) const;
  // While the result exists, this rank waits for others; `what` is followed by the worker's name.
  Activity WaitForOthers(const char* what) const;

  std::shared_ptr<Communicator> communicator_;
  int ranks_ = 1;
  int threads_ = 0;  // 0: default
  const std::string name_;
  Trace* trace_ = nullptr;
  std::optional<TrainingNet> net_;
  std::shared_ptr<Device> device_;
  int reductions_ = 0;                                     // completed
  std::unordered_map<const SyncedTensor*, size_t> index_;  // of gradients in the reducer
  std::optional<StatisticsBlocks> statistics_;
  // Parameters that the solver updates and forward passes may also write: those of layers whose
  // code does not tell (written for Caffe).
  std::optional<StatisticsBlocks> written_weights_;
  std::unique_ptr<Event> weights_gathered_;
  std::vector<SumsOverRanks*> summing_layers_;
  RankExchange* exchange_ = nullptr;
  ThreadedPtr<GradientReducer> reducer_;
  // Since the last line of ReportWaits().
  int iterations_ = 0;
  std::chrono::steady_clock::time_point begin_ = {};
  std::chrono::duration<double> waited_ = {};
};

}  // namespace caffe
