#include "caffe/distributed/gradient_reducer.hpp"

#include "caffe/core/start_thread.hpp"
#include "caffe/distributed/gradient_buckets.hpp"
#include "caffe/error.hpp"

namespace caffe {
GradientReducer::GradientReducer(std::shared_ptr<Communicator> communicator, Device& device,
                                 std::vector<SyncedTensor*> gradients, const Options& options)
    : communicator_(std::move(communicator)),
      stream_(device.compute_stream()),
      gradients_(std::move(gradients)),
      bucket_of_(gradients_.size()),
      options_(options) {
  AllocateBuckets(device);
  next_ = buckets_.size();
  thread_ = StartThread("the reduction of gradients", [this] { Run(); });
}

GradientReducer::~GradientReducer() {
  {
    std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void GradientReducer::AllocateBuckets(Device& device) {
  std::vector<GradientSize> sizes;
  for (const SyncedTensor* gradient : gradients_)
    sizes.push_back({gradient->desc().bytes(), gradient->desc().dtype});
  for (const auto& [first, end, bytes, dtype] : FormBuckets(sizes, options_.buckets)) {
    Bucket& bucket = buckets_.emplace_back();
    bucket.owner = device.Allocate(bytes);
    bucket.memory = {{Shape{static_cast<int64_t>(bytes / SizeOf(dtype))}, dtype},
                     bucket.owner.get()};
    bucket.filled = device.MakeEvent();
    bucket.gradients = end - first;
    bucket.name = StrCat("reduce bucket ", buckets_.size() - 1, " (", bytes, " bytes)");
    char* place = static_cast<char*>(bucket.owner.get());
    for (size_t i = first; i < end; ++i) {
      gradients_[i]->MoveTo({bucket.owner, place});
      bucket_of_[i] = buckets_.size() - 1;
      place += PaddedBytes(sizes[i].bytes);
    }
  }
}

std::vector<size_t> GradientReducer::bucket_bytes() const {
  std::vector<size_t> bytes;
  for (const Bucket& bucket : buckets_) bytes.push_back(bucket.memory.bytes());
  return bytes;
}

void GradientReducer::Start() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_reducing_ || error_; });
  CAFFE_ASSERT(next_ == buckets_.size() || error_, "the last pass is not finished");
  for (Bucket& bucket : buckets_) bucket.missing = bucket.gradients;
  next_ = 0;
}

void GradientReducer::Cancel() {
  std::lock_guard lock(mutex_);
  next_ = buckets_.size();
}

void GradientReducer::MarkReady(size_t index) {
  std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[bucket_of_.at(index)];
  CAFFE_ASSERT(bucket.missing > 0, "gradient ", index, " is ready twice");
  if (--bucket.missing > 0) return;
  stream_.Record(*bucket.filled);  // here, for the stream may record what this thread runs next
  changed_.notify_all();
}

bool GradientReducer::IsAwaited(size_t index) const {
  return index + 1 == bucket_of_.size() || bucket_of_.at(index) != bucket_of_[index + 1];
}

void GradientReducer::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return next_ == buckets_.size() || error_; });
  if (error_) std::rethrow_exception(error_);
  for (SyncedTensor* gradient : gradients_) gradient->MarkWritten();
}

void GradientReducer::Run() {
  try {
    const TraceRow row(options_.trace, communicator_->rank(), "reduction");
    while (ReduceNext()) continue;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    communicator_->Abort(error);
    const std::lock_guard lock(mutex_);
    is_reducing_ = false;
    error_ = error;
    changed_.notify_all();
  }
}

// Waits for the next bucket and reduces it; false once there are no more.
bool GradientReducer::ReduceNext() {
  std::unique_lock lock(mutex_);
  changed_.wait(
      lock, [&] { return stops_ || (next_ < buckets_.size() && buckets_[next_].missing == 0); });
  if (stops_) return false;
  const size_t index = next_;
  const Bucket& bucket = buckets_[index];
  is_reducing_ = true;
  lock.unlock();
  {
    const TraceSpan span(bucket.name);
    communicator_->AllReduceMean(bucket.memory, options_.wire, *bucket.filled);
  }
  lock.lock();
  is_reducing_ = false;
  if (next_ == index) ++next_;  // unless the pass was cancelled meanwhile
  changed_.notify_all();
  return true;
}

}  // namespace caffe
