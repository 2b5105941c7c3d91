#include "caffe/data/batch_buffer.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace caffe::data {
namespace {

constexpr std::align_val_t kAlignment{64};

std::shared_ptr<void> MakeOrdinary(size_t bytes) {
  return {::operator new(bytes, kAlignment),
          [](void* memory) { ::operator delete(memory, kAlignment); }};
}

}  // namespace

void BatchMemory::Reserve(size_t bytes, const HostMemory& make) {
  if (Fits(bytes, make)) return;
  memory_.reset();
  bytes_ = 0;
  memory_ = make == nullptr ? MakeOrdinary(bytes) : make(bytes);
  bytes_ = bytes;
  is_made_ = make != nullptr;
}

void BatchBuffer::ChangeForm(const BatchForm& form) {
  BatchMemory changed;
  if (batch.images != nullptr) {
    const auto bytes = static_cast<size_t>(batch.image_shape.count());
    if (images.Fits(bytes, form.memory)) return;
    changed.Reserve(bytes, form.memory);
    std::memcpy(changed.get(), images.get(), bytes);
    images = std::move(changed);
    batch.images = static_cast<const uint8_t*>(images.get());
  } else if (batch.data != nullptr) {
    const bool has_form = batch.dtype == form.dtype && batch.layout == form.layout;
    const size_t bytes = SizeOf(form.dtype) * static_cast<size_t>(batch.data_shape.count());
    if (has_form && data.Fits(bytes, form.memory)) return;
    changed.Reserve(bytes, form.memory);
    CopyTensor({{batch.data_shape, batch.dtype, batch.layout}, data.get()},
               {{batch.data_shape, form.dtype, form.layout}, changed.get()});
    data = std::move(changed);
    batch.data = data.get();
    batch.dtype = form.dtype;
    batch.layout = form.layout;
  }
}

}  // namespace caffe::data
