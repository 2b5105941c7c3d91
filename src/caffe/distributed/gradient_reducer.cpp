#include "caffe/distributed/gradient_reducer.hpp"

#include <cmath>
#include <utility>

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
      options_(options),
      blocks_filled_(device.MakeEvent()) {
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
    communicator_->Prepare(bucket.memory, options_.wire);
    bucket.gradients = end - first;
    bucket.name = StrCat("reduce bucket ", buckets_.size() - 1, " (", bytes, " bytes)");
    bucket.update_name = StrCat("update bucket ", buckets_.size() - 1);
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

std::vector<std::vector<SyncedTensor*>> GradientReducer::bucket_gradients() const {
  std::vector<std::vector<SyncedTensor*>> gradients(buckets_.size());
  for (size_t i = 0; i < gradients_.size(); ++i) gradients[bucket_of_[i]].push_back(gradients_[i]);
  return gradients;
}

void GradientReducer::Start(Update update) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return !is_reducing_ || error_; });
  CAFFE_ASSERT(next_ == buckets_.size() || error_, "the last pass is not finished");
  for (Bucket& bucket : buckets_) {
    bucket.missing = bucket.used = bucket.gradients;
    bucket.is_reduced = bucket.is_updated = false;
  }
  next_ = 0;
  number_.reset(), sum_.reset();
  blocks_.clear();
  update_ = std::move(update);
  left_to_update_ = update_ ? buckets_.size() : 0;
  has_updated_ = is_over_ = false;
}

void GradientReducer::SumFirst(double number) {
  const std::lock_guard lock(mutex_);
  number_ = number;
  changed_.notify_all();
}

void GradientReducer::MeanFirst(std::vector<TensorView> blocks) {
  const std::lock_guard lock(mutex_);
  stream_.Record(*blocks_filled_);
  blocks_ = std::move(blocks);
  changed_.notify_all();
}

void GradientReducer::Cancel() {
  Lock lock(mutex_);
  next_ = buckets_.size();
  number_.reset();
  blocks_.clear();
  left_to_update_ = 0;
  changed_.wait(lock, [&] { return !is_updating_; });
}

void GradientReducer::MarkReady(size_t index) {
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[bucket_of_.at(index)];
  CAFFE_ASSERT(bucket.missing > 0, "gradient ", index, " is ready twice");
  if (--bucket.missing > 0) return;
  stream_.Record(*bucket.filled);  // here, for the stream may record what this thread runs next
  changed_.notify_all();
}

void GradientReducer::MarkUpdatable(size_t index) {
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[bucket_of_.at(index)];
  CAFFE_ASSERT(bucket.used > 0, "the parameter of gradient ", index, " is left twice");
  if (--bucket.used == 0) changed_.notify_all();
}

bool GradientReducer::IsAwaited(size_t index) const {
  return index + 1 == bucket_of_.size() || bucket_of_.at(index) != bucket_of_[index + 1];
}

std::chrono::duration<double> GradientReducer::Wait() {
  using Clock = std::chrono::steady_clock;
  std::chrono::duration<double> waited = {};
  Lock lock(mutex_);
  is_over_ = true;
  for (Bucket& bucket : buckets_) bucket.used = 0;
  while (true) {
    const Clock::time_point begin = Clock::now();
    changed_.wait(lock, [&] { return error_ || IsDone() || FindUpdatable() != nullptr; });
    waited += Clock::now() - begin;
    if (error_) std::rethrow_exception(error_);
    if (IsDone()) break;
    UpdateOne(lock);
  }
  for (SyncedTensor* gradient : gradients_) gradient->MarkWritten();
  return waited;
}

std::optional<double> GradientReducer::sum() const {
  const std::lock_guard lock(mutex_);
  return sum_;
}

bool GradientReducer::has_updated() const {
  const std::lock_guard lock(mutex_);
  return has_updated_;
}

void GradientReducer::Run() {
  try {
    const TraceRow row(options_.trace, communicator_->rank(), "reduction");
    while (DoNext()) continue;
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    communicator_->Abort(error);
    const std::lock_guard lock(mutex_);
    is_reducing_ = is_updating_ = false;
    error_ = error;
    changed_.notify_all();
  }
}

// Waits for something to do and does it; false once there will be no more. Other ranks wait for
// reductions, so these come first.
bool GradientReducer::DoNext() {
  Lock lock(mutex_);
  const auto can_update = [&] { return !is_over_ && FindUpdatable() != nullptr; };
  changed_.wait(
      lock, [&] { return stops_ || number_ || !blocks_.empty() || CanReduce() || can_update(); });
  if (stops_) return false;
  if (number_) {
    ReduceNumber(lock);
  } else if (!blocks_.empty()) {
    ReduceBlock(lock);
  } else if (CanReduce()) {
    ReduceNext(lock);
  } else {
    is_updating_ = true;
    UpdateOne(lock);
    is_updating_ = false;
  }
  changed_.notify_all();
  return true;
}

void GradientReducer::ReduceNumber(Lock& lock) {
  double sum = *number_;
  is_reducing_ = true;
  lock.unlock();
  {
    const TraceSpan span("reduce loss");
    communicator_->AllReduceSum({&sum, 1});
  }
  lock.lock();
  is_reducing_ = false;
  if (!number_) return;  // the pass was cancelled meanwhile
  number_.reset();
  sum_ = sum;
  if (std::isnan(sum)) left_to_update_ = 0;
}

void GradientReducer::ReduceBlock(Lock& lock) {
  const TensorView block = blocks_.front();
  is_reducing_ = true;
  lock.unlock();
  {
    const TraceSpan span("reduce statistics");
    communicator_->AllReduceMean(block, block.dtype, *blocks_filled_);
  }
  lock.lock();
  is_reducing_ = false;
  if (!blocks_.empty()) blocks_.erase(blocks_.begin());  // unless the pass was cancelled meanwhile
}

void GradientReducer::ReduceNext(Lock& lock) {
  const size_t index = next_;
  Bucket& bucket = buckets_[index];
  is_reducing_ = true;
  lock.unlock();
  {
    const TraceSpan span(bucket.name);
    communicator_->AllReduceMean(bucket.memory, options_.wire, *bucket.filled);
  }
  lock.lock();
  is_reducing_ = false;
  if (next_ != index) return;  // the pass was cancelled meanwhile
  ++next_;
  bucket.is_reduced = true;
}

// Null where none can be updated yet, or none is left.
GradientReducer::Bucket* GradientReducer::FindUpdatable() {
  if (left_to_update_ == 0) return nullptr;
  for (Bucket& bucket : buckets_) {
    if (bucket.is_reduced && bucket.used == 0 && !bucket.is_updated) return &bucket;
  }
  return nullptr;
}

void GradientReducer::UpdateOne(Lock& lock) {
  Bucket& bucket = *FindUpdatable();
  bucket.is_updated = has_updated_ = true;
  lock.unlock();
  {
    const TraceSpan span(bucket.update_name);
    update_(static_cast<size_t>(&bucket - buckets_.data()));
  }
  lock.lock();
  if (left_to_update_ > 0) --left_to_update_;  // unless the pass was cancelled meanwhile
}

}  // namespace caffe
