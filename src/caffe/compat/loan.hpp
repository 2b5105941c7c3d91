// Loans: tensors of a plan as a user's blobs, for the time of one call.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "caffe/compat/caffe/blob.hpp"
#include "caffe/compat/gpu.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::bvlc {

// Where the tensors of a call are, in the host's memory or a GPU's, and the memory that blobs have
// for the time of calls there: copies on the other side, and what is of another type than the
// tensor, are allocated once.
class CallMemory {
 public:
  // Null: the host's memory.
  void MoveTo(Device* gpu) {
    if (gpu != gpu_) Trim();
    gpu_ = gpu;
  }
  Device* gpu() const { return gpu_; }

  // Of that many bytes: the caller's, or (null) its own.
  shared_ptr<SyncedMemory> Take(size_t bytes, void* data) {
    std::vector<shared_ptr<SyncedMemory>>& memories = data != nullptr ? lent_ : own_;
    const shared_ptr<SyncedMemory> memory = FindFree(memories, bytes);
    if (data != nullptr) gpu_ != nullptr ? memory->set_gpu_data(data) : memory->set_cpu_data(data);
    return memory;
  }
  // Lets go of what no blob has now.
  void Trim() {
    const auto is_free = [](const auto& memory) { return memory.use_count() == 1; };
    std::erase_if(lent_, is_free);
    std::erase_if(own_, is_free);
  }

  const void* Read(SyncedMemory& memory) const {
    return gpu_ != nullptr ? memory.gpu_data() : memory.cpu_data();
  }
  void* Write(SyncedMemory& memory) const {
    return gpu_ != nullptr ? memory.mutable_gpu_data() : memory.mutable_cpu_data();
  }
  void Zero(const TensorView& to) const {
    if (to.count() == 0) return;
    if (gpu_ == nullptr) {
      std::memset(to.data, 0, to.bytes());
    } else {
      gpu_->default_stream().FillZero(to.data, to.bytes());
    }
  }
  // Converts.
  void Copy(const TensorView& from, const TensorView& to) const {
    if (to.count() == 0 || from.data == to.data) return;
    if (gpu_ == nullptr) {
      CopyTensor(from, to);
    } else {
      RunOn(*gpu_, KernelOn(*gpu_, ops::Cast{}, {&from, 1}, {&to, 1}), {&from, 1}, {&to, 1});
    }
  }

 private:
  static shared_ptr<SyncedMemory> FindFree(std::vector<shared_ptr<SyncedMemory>>& memories,
                                           size_t bytes) {
    for (const shared_ptr<SyncedMemory>& memory : memories) {
      if (memory.use_count() == 1 && memory->size() == bytes) return memory;
    }
    return memories.emplace_back(std::make_shared<SyncedMemory>(bytes));
  }

  Device* gpu_ = nullptr;
  std::vector<shared_ptr<SyncedMemory>> lent_, own_;
};

enum class Part { kData, kDiff };

// A part of `blob`, which has the tensor's shape, becomes what `from` holds (null: zeros), and `to`
// (null: nothing) gets what the call leaves there. Where a tensor has elements of Dtype the blob
// has the tensor's own memory; else values are converted on both ways.
template <typename Dtype>
class Loan {
 public:
  Loan(CallMemory& place, Blob<Dtype>& blob, Part part, const TensorView* from,
       const TensorView* to)
      : place_(place),
        blob_(blob),
        memory_(part == Part::kData ? blob.data_ : blob.diff_),
        own_(memory_),
        own_capacity_(blob.capacity_),
        to_(to) {
    const TensorView* const tensor = to != nullptr ? to : from;
    const bool is_same = tensor->dtype == kDTypeOf<Dtype> && tensor->count() > 0;
    lent_ = place_.Take(static_cast<size_t>(tensor->count()) * sizeof(Dtype),
                        is_same ? tensor->data : nullptr);
    const TensorView plain = PlainView(tensor->shape, kDTypeOf<Dtype>, place_.Write(*lent_));
    if (from == nullptr) {
      place_.Zero(plain);
    } else {
      place_.Copy(PlainView(plain.shape, from->dtype, from->data), plain);
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
    place_.Copy(PlainView(to_->shape, kDTypeOf<Dtype>, place_.Read(*memory_)), *to_);
  }

  void Keep() {
    if (memory_ != lent_) return;
    own_ = std::make_shared<SyncedMemory>(static_cast<size_t>(own_capacity_) * sizeof(Dtype));
    const Shape elements({static_cast<int64_t>(lent_->size() / sizeof(Dtype))});
    place_.Copy(PlainView(elements, kDTypeOf<Dtype>, place_.Read(*lent_)),
                PlainView(elements, kDTypeOf<Dtype>, place_.Write(*own_)));
  }

 private:
  CallMemory& place_;
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
  explicit Loans(CallMemory& place) : place_(place) {}
  ~Loans() {
    while (!loans_.empty()) loans_.pop_back();
  }
  Loans(const Loans&) = delete;
  Loans& operator=(const Loans&) = delete;

  void Lend(Blob<Dtype>& blob, Part part, const TensorView* from, const TensorView* to) {
    loans_.emplace_back(place_, blob, part, from, to);
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
  CallMemory& place_;
  std::deque<Loan<Dtype>> loans_;
};

}  // namespace caffe::bvlc
