#include "caffe/distributed/gradient_reducer.hpp"

#include "caffe/core/start_thread.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

// Gradients begin where the widest vector likes them to.
constexpr size_t kAlignment = 64;

size_t PaddedBytes(const TensorDesc& desc) {
  return (desc.bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

GradientReducer::GradientReducer(std::shared_ptr<Communicator> communicator, Device& device,
                                 std::vector<SyncedTensor*> gradients, int buckets, Trace* trace)
    : communicator_(std::move(communicator)),
      stream_(device.compute_stream()),
      gradients_(std::move(gradients)),
      bucket_of_(gradients_.size()),
      trace_(trace) {
  Require(buckets > 0, "reduce_buckets is ", buckets, "; it must be at least 1");
  FormBuckets(device, buckets);
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

void GradientReducer::FormBuckets(Device& device, int buckets) {
  size_t total = 0;
  for (const SyncedTensor* gradient : gradients_) total += PaddedBytes(gradient->desc());
  const size_t enough = (total + buckets - 1) / buckets;
  for (size_t first = 0; first < gradients_.size();) {
    const DType dtype = gradients_[first]->desc().dtype;
    size_t end = first, bytes = 0;
    for (; end < gradients_.size() && bytes < enough; ++end) {
      if (gradients_[end]->desc().dtype != dtype) break;
      bytes += PaddedBytes(gradients_[end]->desc());
    }
    Bucket& bucket = buckets_.emplace_back();
    bucket.owner = device.Allocate(bytes);
    bucket.memory = {{Shape{static_cast<int64_t>(bytes / SizeOf(dtype))}, dtype},
                     bucket.owner.get()};
    bucket.gradients = end - first;
    bucket.name = StrCat("reduce bucket ", buckets_.size() - 1, " (", bytes, " bytes)");
    char* place = static_cast<char*>(bucket.owner.get());
    for (; first < end; ++first) {
      gradients_[first]->MoveTo({bucket.owner, place});
      bucket_of_[first] = buckets_.size() - 1;
      place += PaddedBytes(gradients_[first]->desc());
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
  if (--bucket.missing == 0) changed_.notify_all();
}

void GradientReducer::Wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return next_ == buckets_.size() || error_; });
  if (error_) std::rethrow_exception(error_);
  for (SyncedTensor* gradient : gradients_) gradient->MarkWritten();
}

void GradientReducer::Run() {
  try {
    const TraceRow row(trace_, communicator_->rank(), "reduction");
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
    communicator_->AllReduceMean(bucket.memory, stream_);
  }
  lock.lock();
  is_reducing_ = false;
  if (next_ == index) ++next_;  // unless the pass was cancelled meanwhile
  changed_.notify_all();
  return true;
}

}  // namespace caffe
