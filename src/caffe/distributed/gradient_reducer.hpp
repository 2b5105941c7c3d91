// GradientReducer: all-reduces gradients in buckets while backward goes on.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
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
class GradientReducer {
 public:
  struct Options {
    // Of about equal size, at most so many for each type of element; 1 or more.
    int buckets = 6;
    // The type in which gradients travel that have more bits.
    DType wire = DType::kDouble;
    Trace* trace = nullptr;  // may be null
  };

  // `gradients` in the order in which backward will finish them, alike on all ranks; they must
  // outlive this. Throws InvalidArgument unless there may be a bucket.
  GradientReducer(std::shared_ptr<Communicator> communicator, Device& device,
                  std::vector<SyncedTensor*> gradients, const Options& options);
  // Waits for the bucket under way. After an error, abort the communicator before.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // Before a backward pass whose gradients are to be reduced.
  void Start();
  // After a pass that failed: what is not reduced yet stays as it is. Does not wait for the bucket
  // in flight, which other ranks may never come to; the next Start does.
  void Cancel();
  // Gradient `index` of the list is final: the device's compute stream has been given all that
  // writes it, and does not record. From the thread that called Start.
  void MarkReady(size_t index);
  // Whether it is the last of its bucket, so that the reduction waits for it.
  bool IsAwaited(size_t index) const;
  // Returns when all gradients are those of all ranks. Throws what went wrong on any rank.
  void Wait();

  // Bytes of each bucket, in order.
  std::vector<size_t> bucket_bytes() const;

 private:
  struct Bucket {
    TensorView memory;
    std::shared_ptr<void> owner;
    std::unique_ptr<Event> filled;  // on the stream that computes the gradients
    size_t gradients = 0;
    size_t missing = 0;  // of them, before the bucket can be reduced
    std::string name;    // in the trace
  };

  void AllocateBuckets(Device& device);
  void Run();
  bool ReduceNext();

  const std::shared_ptr<Communicator> communicator_;
  Stream& stream_;  // which computes the gradients
  const std::vector<SyncedTensor*> gradients_;
  std::vector<size_t> bucket_of_;  // by gradient
  std::vector<Bucket> buckets_;
  const Options options_;

  std::mutex mutex_;
  std::condition_variable changed_;
  size_t next_ = 0;  // bucket to reduce; all done at first
  bool is_reducing_ = false;
  bool stops_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace caffe
