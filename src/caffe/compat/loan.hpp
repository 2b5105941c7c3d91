// Loans: tensors of a plan as a user's blobs, for the time of one call.
#pragma once

#include <cstring>
#include <deque>
#include <memory>

#include "caffe/compat/caffe/blob.hpp"
#include "caffe/error.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::bvlc {

// Row-major elements in host memory.
inline TensorView PlainView(const Shape& shape, DType dtype, const void* data) {
  TensorView view;
  view.shape = shape;
  view.dtype = dtype;
  view.data = const_cast<void*>(data);
  return view;
}

enum class Part { kData, kDiff };

// A part of `blob`, which has the tensor's shape, becomes what `from` holds (null: zeros), and `to`
// (null: nothing) gets what the call leaves there. Where a tensor has elements of Dtype the blob
// has the tensor's own memory; else values are converted on both ways.
template <typename Dtype>
class Loan {
 public:
  Loan(Blob<Dtype>& blob, Part part, const TensorView* from, const TensorView* to)
      : blob_(blob),
        memory_(part == Part::kData ? blob.data_ : blob.diff_),
        own_(memory_),
        own_capacity_(blob.capacity_),
        to_(to) {
    const TensorView* const tensor = to != nullptr ? to : from;
    lent_ = std::make_shared<SyncedMemory>(static_cast<size_t>(tensor->count()) * sizeof(Dtype));
    if (tensor->dtype == kDTypeOf<Dtype> && tensor->count() > 0) lent_->set_cpu_data(tensor->data);
    const TensorView plain = PlainView(tensor->shape, kDTypeOf<Dtype>, lent_->mutable_cpu_data());
    if (from == nullptr) {
      std::memset(plain.data, 0, plain.bytes());
    } else if (from->data != plain.data) {
      CopyTensor(PlainView(plain.shape, from->dtype, from->data), plain);
    }
    memory_ = lent_;
    blob_.capacity_ = static_cast<int>(tensor->count());  // growth takes memory of the blob's own
  }
  // A blob that has grown keeps its new memory.
  ~Loan() {
    if (memory_ != lent_) return;
    memory_ = own_;
    blob_.capacity_ = own_capacity_;
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  void Store() {
    if (to_ == nullptr) return;
    const void* const values = memory_->cpu_data();
    if (values == to_->data) return;
    CopyTensor(PlainView(to_->shape, kDTypeOf<Dtype>, values), *to_);
  }

  void Keep() {
    if (memory_ != lent_) return;
    own_ = std::make_shared<SyncedMemory>(static_cast<size_t>(own_capacity_) * sizeof(Dtype));
    std::memcpy(own_->mutable_cpu_data(), lent_->cpu_data(), lent_->size());
  }

 private:
  Blob<Dtype>& blob_;
  shared_ptr<SyncedMemory>& memory_;
  shared_ptr<SyncedMemory> own_, lent_;
  int own_capacity_;
  const TensorView* to_;
};

// Those of one call. They end in reverse order, because a blob may be lent more than one tensor.
template <typename Dtype>
class Loans {
 public:
  Loans() = default;
  ~Loans() {
    while (!loans_.empty()) loans_.pop_back();
  }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  void Lend(Blob<Dtype>& blob, Part part, const TensorView* from, const TensorView* to) {
    loans_.emplace_back(blob, part, from, to);
  }
  // After the call, when the blobs still have the tensors' shapes.
  void Store() {
    for (Loan<Dtype>& loan : loans_) loan.Store();
  }
  // When they have not: the blobs keep what the call has left in them, in memory of their own.
  void Keep() {
    for (Loan<Dtype>& loan : loans_) loan.Keep();
  }

 private:
  std::deque<Loan<Dtype>> loans_;
};

}  // namespace caffe::bvlc
