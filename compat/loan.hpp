// Loans: lend tensors of a plan to a user's blobs for the duration of one call.
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "caffe/compat/caffe/blob.hpp"
#include "compat/gpu.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::bvlc {

// The location of a call's tensors, in host or GPU memory, and memory for the blobs in calls there:
// copies on the other side, and conversions of tensors of other types, are allocated only once.
class CallMemory {
 public:
  // Null selects host memory.
  void MoveTo(Device* gpu) {
    if (gpu != gpu_) Trim();
    gpu_ = gpu;
  }
  Device* gpu() const { return gpu_; }

  // Returns `bytes` bytes at `data`, which the caller owns, or, if null, in memory of this object.
  shared_ptr<SyncedMemory> Take(size_t bytes, void* data) {
    std::vector<shared_ptr<SyncedMemory>>& memories = data != nullptr ? lent_ : own_;
    const shared_ptr<SyncedMemory> memory = FindFree(memories, bytes);
    if (data != nullptr) gpu_ != nullptr ? memory->set_gpu_data(data) : memory->set_cpu_data(data);
    return memory;
  }
  // Frees memory that no blob uses now.
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
  // Copies with type conversion.
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

// Lends memory to one part of `blob`, which must have the tensor's shape. It starts with the values
// of `from` (null: zeros), and Store() copies the results to `to` (null: nothing). A tensor with
// elements of Dtype is used in place; other types are converted in both directions.
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
    blob_.capacity_ = static_cast<int>(tensor->count());  // a growing blob allocates its own memory
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

// The loans of one call. They end in reverse order, because a blob may get several tensors.
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
  // Called after the call, if the blobs still have the tensors' shapes.
  void Store() {
    for (Loan<Dtype>& loan : loans_) loan.Store();
  }
  // Called if they have not: the blobs keep the results in memory of their own.
  void Keep() {
    for (Loan<Dtype>& loan : loans_) loan.Keep();
  }

 private:
  CallMemory& place_;
  std::deque<Loan<Dtype>> loans_;
};

}  // namespace caffe::bvlc
