#include "caffe/tensor/synced_tensor.hpp"

#include <cstring>
#include <vector>

namespace caffe {

void SyncedTensor::Reset(const TensorDesc& desc) {
  if (desc.shape == desc_.shape && desc.dtype == desc_.dtype && desc.layout == desc_.layout) return;
  const bool keeps_contents = desc.count() == desc_.count() && desc.dtype == desc_.dtype &&
                              desc.layout == Layout::kPlain && desc_.layout == Layout::kPlain;
  if (host_is_newer_ && keeps_contents) WriteBack();
  desc_ = desc;
  if (!keeps_contents) storage_ = std::make_shared<Storage>();
  mirror_.reset();
  mirror_is_stale_ = true;
  host_is_newer_ = false;
}

void SyncedTensor::ShareWith(const SyncedTensor& other) {
  CAFFE_ASSERT(other.desc_.count() == desc_.count() && other.desc_.dtype == desc_.dtype);
  storage_ = other.storage_;
  mirror_.reset();
  mirror_is_stale_ = true;
  host_is_newer_ = false;
}

void SyncedTensor::MoveTo(std::shared_ptr<void> memory) {
  std::vector<char> contents(desc_.bytes());
  device_->CopyToHost(contents.data(), data(), contents.size());
  device_->CopyFromHost(memory.get(), contents.data(), contents.size());
  storage_->memory = std::move(memory);
}

void SyncedTensor::EnsureStorage() {
  if (!storage_->memory) storage_->memory = device_->Allocate(desc_.bytes());
}

TensorView SyncedTensor::StorageView() {
  EnsureStorage();
  return {desc_, storage_->memory.get()};
}

void* SyncedTensor::data() {
  WriteBack();
  EnsureStorage();
  return storage_->memory.get();
}

void SyncedTensor::WriteBack() {
  if (!host_is_newer_) return;
  host_is_newer_ = false;
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
  if (is_direct(dtype)) {
    if (host_is_newer_) WriteBack();
    device_->Synchronize();
    EnsureStorage();
    return storage_->memory.get();
  }
  if (mirror_ && mirror_dtype_ != dtype) {
    WriteBack();
    mirror_.reset();
  }
  if (!mirror_) {
    mirror_ = std::make_unique<char[]>(static_cast<size_t>(desc_.count()) * SizeOf(dtype));
    mirror_dtype_ = dtype;
    mirror_is_stale_ = true;
  }
  if (mirror_is_stale_ && !host_is_newer_) {
    device_->Synchronize();
    TensorView mirror{{desc_.shape, dtype, Layout::kPlain}, mirror_.get()};
    const TensorView storage = StorageView();
    if (device_->is_host_accessible()) {
      CopyTensor(storage, mirror);
    } else {
      std::vector<char> staging(storage.bytes());
      device_->CopyToHost(staging.data(), storage.data, staging.size());
      CopyTensor({desc_, staging.data()}, mirror);
    }
    mirror_is_stale_ = false;
  }
  return mirror_.get();
}

void SyncedTensor::Zero() {
  EnsureStorage();
  void* const storage = storage_->memory.get();
  if (device_->is_host_accessible()) {
    std::memset(storage, 0, desc_.bytes());
  } else {
    const std::vector<char> zeros(desc_.bytes());
    device_->CopyFromHost(storage, zeros.data(), zeros.size());
  }
  MarkWritten();
}

}  // namespace caffe
