#include "caffe/tensor/stored_elements.hpp"

#include <utility>
#include <vector>

#include "caffe/error.hpp"

namespace caffe {
namespace {

void Fill(const Origin& origin, Device& device, const TensorDesc& desc, void* memory) {
  CAFFE_ASSERT(desc.layout == Layout::kPlain, "values of an origin are plain");
  if (device.is_host_accessible()) return origin.Read(0, desc.count(), desc.dtype, memory);
  std::vector<char> staging(desc.bytes());
  origin.Read(0, desc.count(), desc.dtype, staging.data());
  device.CopyFromHost(memory, staging.data(), staging.size());
}

}  // namespace

std::shared_ptr<void> StoredElements::Loaded(Device& device, const TensorDesc& desc) const {
  if (memory_) return memory_;
  std::shared_ptr<void> memory = device.Allocate(desc.bytes());
  if (origin_) Fill(*origin_, device, desc, memory.get());
  return memory;
}

void* StoredElements::Pin(Device& device, const TensorDesc& desc) {
  if (is_pinned()) return memory_.get();
  const std::lock_guard lock(mutex_);
  if (!is_pinned_) {
    memory_ = Loaded(device, desc);
    bytes_ = desc.bytes();
    origin_.reset();
    is_pinned_.store(true, std::memory_order_release);
  }
  return memory_.get();
}

void* StoredElements::Borrow(Device& device, const TensorDesc& desc) {
  const std::lock_guard lock(mutex_);
  if (!is_pinned_) {
    memory_ = Loaded(device, desc);
    bytes_ = desc.bytes();
    if (!origin_) is_pinned_.store(true, std::memory_order_release);
  }
  ++borrowers_;
  return memory_.get();
}

void StoredElements::Return() {
  const std::lock_guard lock(mutex_);
  CAFFE_ASSERT(borrowers_ > 0);
  if (--borrowers_ > 0 || is_pinned_) return;
  memory_.reset();
  bytes_ = 0;
}

void StoredElements::SetOrigin(std::shared_ptr<const Origin> origin, Device& device,
                               const TensorDesc& desc) {
  const std::lock_guard lock(mutex_);
  CAFFE_ASSERT(borrowers_ == 0, "elements are replaced while a net runs");
  if (is_pinned_) return Fill(*origin, device, desc, memory_.get());
  origin_ = std::move(origin);
}

std::shared_ptr<const Origin> StoredElements::AbsentFrom() const {
  const std::lock_guard lock(mutex_);
  return memory_ == nullptr ? origin_ : nullptr;
}

void StoredElements::Replace(std::shared_ptr<void> memory, size_t bytes) {
  memory_ = std::move(memory);
  bytes_ = bytes;
}

size_t StoredElements::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace caffe
