#include "caffe/tensor/synced_tensor.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

namespace caffe {

void SyncedTensor::Reset(const TensorDesc& desc) {
  if (desc.shape == desc_.shape && desc.dtype == desc_.dtype && desc.layout == desc_.layout) return;
  const bool keeps_contents = desc.count() == desc_.count() && desc.dtype == desc_.dtype &&
                              desc.layout == Layout::kPlain && desc_.layout == Layout::kPlain;
  if (keeps_contents) WriteBack();
  desc_ = desc;
  DropMirror();
  if (!keeps_contents) storage_ = std::make_shared<Storage>();
}

void SyncedTensor::ResetForOverwriting(const TensorDesc& desc) {
  const StoredElements& elements = storage_->elements;
  const bool is_own =
      storage_.use_count() == 1 && elements.is_pinned() && elements.memory().use_count() == 1;
  const bool is_same = desc.shape == desc_.shape && desc.dtype == desc_.dtype;
  if (is_same || !is_own || desc.bytes() > elements.bytes()) return Reset(desc);
  desc_ = desc;
  NoteWrite();
  DropMirror();
}

void SyncedTensor::ShareWith(const SyncedTensor& other) {
  CAFFE_ASSERT(other.desc_.count() == desc_.count() && other.desc_.dtype == desc_.dtype);
  DropMirror();
  storage_ = other.storage_;
}

uint64_t SyncedTensor::NextVersion() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

uint64_t SyncedTensor::version() const {
  const StoredElements& elements = storage_->elements;
  const bool is_held = elements.is_pinned() && elements.memory().use_count() > 1;
  if (is_held || storage_->was_held) {
    storage_->may_have_changed = NextVersion();
    storage_->was_held = is_held;
  }
  return std::max(storage_->version.load(), storage_->may_have_changed.load());
}

void SyncedTensor::DropMirror() {
  if (mirror_) {
    const std::lock_guard lock(storage_->mirrored_mutex);
    std::erase(storage_->mirrored, this);
  }
  mirror_.reset();
  filled_with_.clear();
  mirror_is_stale_ = true;
  host_is_newer_ = false;
}

void SyncedTensor::MoveTo(std::shared_ptr<void> memory) {
  std::vector<char> contents(desc_.bytes());
  device_->CopyToHost(contents.data(), data(), contents.size());
  device_->CopyFromHost(memory.get(), contents.data(), contents.size());
  storage_->elements.Replace(std::move(memory), desc_.bytes());
}

void SyncedTensor::SetOrigin(std::shared_ptr<const Origin> origin) {
  WriteBackAll();
  storage_->elements.SetOrigin(std::move(origin), *device_, desc_);
  mirror_is_stale_ = true;
  NoteWrite();
  if (is_held()) FillMirror();
}

void* SyncedTensor::Borrow() {
  WriteBackAll();
  return storage_->elements.Borrow(*device_, desc_);
}

void SyncedTensor::Return() {
  if (!storage_->elements.is_pinned()) device_->Synchronize();  // steps may still read it
  storage_->elements.Return();
}

int64_t SyncedTensor::HeldBytes(std::set<const void*>* counted) const {
  const size_t mirror = mirror_ == nullptr ? 0 : mirror_bytes() + filled_with_.size();
  const bool is_first = counted->insert(storage_.get()).second;
  return static_cast<int64_t>(mirror + (is_first ? storage_->elements.bytes() : 0));
}

TensorView SyncedTensor::StorageView() {
  return {desc_, Pin()};
}

void* SyncedTensor::data() {
  WriteBackAll();
  return Pin();
}

// Writes back the changes that users made in mirrors of other tensors with this storage.
void SyncedTensor::WriteBackSharers() {
  if (storage_.use_count() == 1) return;
  const std::lock_guard lock(storage_->mirrored_mutex);
  for (SyncedTensor* sharer : storage_->mirrored) {
    if (sharer != this && sharer->may_be_newer()) sharer->WriteBack();
  }
}

void SyncedTensor::WriteBack() {
  if (!may_be_newer()) return;
  const bool holder_wrote =
      !filled_with_.empty() && !mirror_is_stale_ &&
      std::memcmp(mirror_.get(), filled_with_.data(), filled_with_.size()) != 0;
  RememberMirror();
  if (!host_is_newer_ && !holder_wrote) return;
  host_is_newer_ = false;
  NoteWrite();
  mirror_version_ = storage_->version;
  const TensorView storage = StorageView();
  TensorView mirror{{desc_.shape, mirror_dtype_, Layout::kPlain}, mirror_.get()};
  if (device_->is_host_accessible()) {
    CopyTensor(mirror, storage);
    return;
  }
  std::vector<char> staging(storage.bytes());
  CopyTensor(mirror, {desc_, staging.data()});
  device_->CopyFromHost(storage.data, staging.data(), staging.size());
}

void* SyncedTensor::Host(DType dtype) {
  WriteBackSharers();
  if (is_direct(dtype)) {
    WriteBack();
    device_->Synchronize();
    return Pin();
  }
  if (mirror_ && mirror_dtype_ != dtype) {
    WriteBack();
    DropMirror();
  }
  if (!mirror_) {
    mirror_dtype_ = dtype;
    mirror_ = std::shared_ptr<char[]>(new char[mirror_bytes()]());
    const std::lock_guard lock(storage_->mirrored_mutex);
    storage_->mirrored.push_back(this);
  }
  // Another tensor may have written the storage.
  const bool is_stale = mirror_is_stale_ || mirror_version_ != storage_->version;
  if (is_stale && !host_is_newer_) FillMirror();
  return mirror_.get();
}

void SyncedTensor::FillMirror() {
  device_->Synchronize();
  TensorView mirror{{desc_.shape, mirror_dtype_, Layout::kPlain}, mirror_.get()};
  const TensorView storage = StorageView();
  if (device_->is_host_accessible()) {
    CopyTensor(storage, mirror);
  } else {
    std::vector<char> staging(storage.bytes());
    device_->CopyToHost(staging.data(), storage.data, staging.size());
    CopyTensor({desc_, staging.data()}, mirror);
  }
  mirror_is_stale_ = false;
  mirror_version_ = storage_->version;
  RememberMirror();
}

// Remembers the mirror while it is held. A holder that let go may have written last; after this
// call nobody can any more.
void SyncedTensor::RememberMirror() {
  if (is_held()) {
    filled_with_.assign(mirror_.get(), mirror_.get() + mirror_bytes());
  } else {
    filled_with_.clear();
  }
}

std::shared_ptr<void> SyncedTensor::HoldHost(DType dtype) {
  void* const elements = Host(dtype);
  if (is_direct(dtype)) {
    storage_->was_held = true;
    return storage_->elements.memory();
  }
  std::shared_ptr<void> held(mirror_, elements);
  if (filled_with_.empty()) RememberMirror();
  return held;
}

void SyncedTensor::Zero() {
  void* const storage = Pin();
  if (device_->is_host_accessible()) {
    std::memset(storage, 0, desc_.bytes());
  } else {
    const std::vector<char> zeros(desc_.bytes());
    device_->CopyFromHost(storage, zeros.data(), zeros.size());
  }
  MarkWritten();
}

}  // namespace caffe
