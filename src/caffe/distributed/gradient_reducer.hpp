// GradientReducer: all-reduces gradients in buckets while backward goes on.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "caffe/distributed/communicator.hpp"
#include "caffe/tensor/synced_tensor.hpp"
#include "caffe/trace.hpp"

namespace caffe {

// Moves the gradients of one rank into one block of memory per bucket. A bucket is reduced by a
// thread of its own as soon as all its gradients are there and the buckets before it are done, so
// that all ranks keep one order, whatever the timing. Between Start and the end of Wait, nothing
// else may use the communicator.
//
// A pass may also update the parameters of each bucket. While backward goes on, the same thread
// does it whenever it has nothing to reduce; after that, the thread that waits.
class GradientReducer {
 public:
  struct Options {
    // Maximum number of buckets for each type of element, from 1; they are about equally large.
    int buckets = 6;
    // Gradients with more bits than this type are sent in it.
    DType wire = DType::kDouble;
    Trace* trace = nullptr;  // may be null
  };
  // Updates the parameters of a bucket, once in a pass. Two threads may update two buckets at a
  // time.
  using Update = std::function<void(size_t bucket)>;

  // `gradients` in the order in which backward will finish them, alike on all ranks; they must
  // outlive this. Throws InvalidArgument unless there may be a bucket.
  GradientReducer(std::shared_ptr<Communicator> communicator, Device& device,
                  std::vector<SyncedTensor*> gradients, const Options& options);
  // Waits for the bucket under way. After an error, abort the communicator before.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before a backward pass whose gradients are to be reduced. An empty `update` updates nothing;
  // else the device's memory must be the host's, where what has been launched is done.
  void Start(Update update = {});
  // Before the first gradient of the pass is ready: this rank's part of a number that is summed
  // over the ranks before any bucket, on all ranks or on none. Where the sum is not a number,
  // nothing is updated in this pass.
  void SumFirst(double number);
  // Before the first gradient of the pass is ready: blocks of memory that become their mean over
  // the ranks before any bucket, in their own type, on all ranks or on none. The device's compute
  // stream has been given all that writes them.
  void MeanFirst(std::vector<TensorView> blocks);
  // After a pass that failed: what is not reduced or updated yet stays as it is. Waits for the
  // update under way, but not for the bucket in flight, which other ranks may never come to; the
  // next Start does.
  void Cancel();
  // Gradient `index` of the list is final: the device's compute stream has been given all that
  // writes it, and does not record. From the thread that called Start.
  void MarkReady(size_t index);
  // Nothing uses the parameter of gradient `index` any more until Wait has returned.
  void MarkUpdatable(size_t index);
  // True if it is the last of its bucket, so that the reduction waits for it.
  bool IsAwaited(size_t index) const;
  // Called at the end of backward. Returns when all gradients are reduced, and all buckets updated
  // if the pass updates. Throws the error of any rank. The result is the time spent waiting;
  // updating is not.
  std::chrono::duration<double> Wait();

  // Since the last Start: the sum of SumFirst's numbers, after Wait; nothing where there were none.
  std::optional<double> sum() const;
  // True if the update of any bucket has begun.
  bool has_updated() const;

  // Bytes of each bucket, in order.
  std::vector<size_t> bucket_bytes() const;
  // Gradients of each bucket, in order.
  std::vector<std::vector<SyncedTensor*>> bucket_gradients() const;

 private:
  struct Bucket {
    TensorView memory;
    std::shared_ptr<void> owner;
    std::unique_ptr<Event> filled;  // on the stream that computes the gradients
    size_t gradients = 0;
    size_t missing = 0;  // of them, before the bucket can be reduced
    size_t used = 0;     // parameters of them that backward still uses
    bool is_reduced = false, is_updated = false;
    std::string name, update_name;  // in the trace
  };
  using Lock = std::unique_lock<std::mutex>;

  void AllocateBuckets(Device& device);
  void Run();
  bool DoNext();
  bool CanReduce() const { return next_ < buckets_.size() && buckets_[next_].missing == 0; }
  void ReduceNumber(Lock& lock);
  void ReduceBlock(Lock& lock);
  void ReduceNext(Lock& lock);
  Bucket* FindUpdatable();
  void UpdateOne(Lock& lock);
  bool IsDone() const {
    return next_ == buckets_.size() && !number_ && blocks_.empty() && left_to_update_ == 0;
  }

  const std::shared_ptr<Communicator> communicator_;
  Stream& stream_;  // which computes the gradients
  const std::vector<SyncedTensor*> gradients_;
  std::vector<size_t> bucket_of_;  // by gradient
  std::vector<Bucket> buckets_;
  const Options options_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;  // bucket to reduce; all done at first
  bool is_reducing_ = false;
  std::optional<double> number_, sum_;  // to sum, and summed
  std::vector<TensorView> blocks_;      // to reduce before the buckets
  std::unique_ptr<Event> blocks_filled_;
  Update update_;
  size_t left_to_update_ = 0;
  bool is_updating_ = false;  // in the reduction's thread
  bool has_updated_ = false;
  bool is_over_ = true;  // backward
  bool stops_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace caffe
