#include "caffe/compat/caffe/syncedmem.hpp"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "caffe/device/host_memory.hpp"
#include "caffe/error.hpp"
#include "compat/gpu.hpp"
#include "compat/memory_source.hpp"

namespace caffe::bvlc {
namespace {

// Memory of its own or of the caller, on the host and on the GPU.
class OwnMemory final : public MemorySource {
 public:
  explicit OwnMemory(size_t size) : size_(size) {}

  void* Cpu(bool writes) override {
    if (cpu_ == nullptr) {
      own_cpu_ = AllocateOnHost();
      cpu_ = own_cpu_.get();
    }
    if (head_ == SyncedMemory::HEAD_AT_GPU) {
      CopyOn(*gpu_device_, cpu_, gpu_, size_);
      head_ = SyncedMemory::SYNCED;
    }
    if (writes || head_ == SyncedMemory::UNINITIALIZED) head_ = SyncedMemory::HEAD_AT_CPU;
    return cpu_;
  }

  void* Gpu(bool writes) override {
    Device& gpu = CurrentGpu();
    if (gpu_ != nullptr && gpu_device_ != &gpu) LeaveGpu();
    if (gpu_ == nullptr) {
      own_gpu_ = AllocateOn(gpu, size_);
      gpu_ = own_gpu_.get();
      gpu_device_ = &gpu;
    }
    if (head_ == SyncedMemory::HEAD_AT_CPU) {
      CopyOn(gpu, gpu_, cpu_, size_);
      head_ = SyncedMemory::SYNCED;
    }
    if (writes || head_ == SyncedMemory::UNINITIALIZED) head_ = SyncedMemory::HEAD_AT_GPU;
    return gpu_;
  }

  void SetCpu(void* memory) override {
    Require(memory != nullptr, "set_cpu_data: the pointer is null");
    own_cpu_.reset();
    cpu_ = memory;
    head_ = SyncedMemory::HEAD_AT_CPU;
  }
  void SetGpu(void* memory) override {
    Require(memory != nullptr, "set_gpu_data: the pointer is null");
    gpu_device_ = &CurrentGpu();
    own_gpu_.reset();
    gpu_ = memory;
    head_ = SyncedMemory::HEAD_AT_GPU;
  }

  SyncedMemory::SyncedHead head() const override { return head_; }
  size_t size() const override { return size_; }

 private:
  // Uses pinned memory during a layer's call on a GPU, for faster copies.
  std::shared_ptr<void> AllocateOnHost() const {
    const CallScope* const call = CallScope::Current();
    if (call == nullptr || call->gpu() == nullptr) {
      std::shared_ptr<void> memory(std::calloc(size_ + 1, 1), std::free);
      if (memory == nullptr) throw Error(StrCat("no memory for ", size_, " bytes"));
      return memory;
    }
    std::shared_ptr<void> memory = AllocateHostMemory(*call->gpu(), size_ + 1);
    std::memset(memory.get(), 0, size_);
    return memory;
  }
  // A layer that is set up before its net's GPU is known may have memory on another GPU.
  void LeaveGpu() {
    if (head_ != SyncedMemory::UNINITIALIZED) {
      Cpu(false);
      head_ = SyncedMemory::HEAD_AT_CPU;
    }
    own_gpu_ = nullptr;
    gpu_ = nullptr;
  }

  size_t size_;
  std::shared_ptr<void> own_cpu_, own_gpu_;
  Device* gpu_device_ = nullptr;  // device of gpu_
  void* cpu_ = nullptr;
  void* gpu_ = nullptr;
  SyncedMemory::SyncedHead head_ = SyncedMemory::UNINITIALIZED;
};

template <typename Dtype>
class NetTensor final : public MemorySource {
 public:
  NetTensor(std::shared_ptr<NetBlob> shown, bool is_diff)
      : shown_(std::move(shown)), blob_(shown_->blob), is_diff_(is_diff) {}

  // Holds the memory, because programs for Caffe keep pointers over many passes.
  void* Cpu(bool writes) override {
    if (!is_diff_ && shown_->borrowed() != nullptr) return shown_->borrowed();
    held_ = is_diff_ ? blob_->hold_cpu_diff<Dtype>() : blob_->hold_cpu_data<Dtype>();
    if (!writes) return held_.get();
    return is_diff_ ? blob_->mutable_cpu_diff<Dtype>() : blob_->mutable_cpu_data<Dtype>();
  }

  void* Gpu(bool writes) override {
    Device& gpu = CurrentGpu();
    if (writes) {
      throw Unsupported(
          "a net's blob cannot be written in the GPU's memory, where the plan may have another "
          "layout and type: write mutable_cpu_data(), which is copied before the net runs");
    }
    const void* const values = Cpu(false);
    on_gpu_ = AllocateOn(gpu, size());
    CopyOn(gpu, on_gpu_.get(), values, size());
    return on_gpu_.get();
  }

  void SetCpu(void* memory) override {
    Require(memory != nullptr, "set_cpu_data: the pointer is null");
    if (is_diff_ || !shown_->is_input) RefuseMemory("set_cpu_data", "mutable_cpu_data()");
    shown_->Borrow(memory);
  }
  void SetGpu(void*) override { RefuseMemory("set_gpu_data", "mutable_cpu_data()"); }

  SyncedMemory::SyncedHead head() const override { return SyncedMemory::SYNCED; }
  size_t size() const override { return static_cast<size_t>(blob_->count()) * sizeof(Dtype); }

 private:
  [[noreturn]] static void RefuseMemory(const char* call, const char* instead) {
    throw Unsupported(StrCat(call,
                             ": a net's blob keeps its memory, which the plan has placed; "
                             "copy the values to ",
                             instead));
  }

  const std::shared_ptr<NetBlob> shown_;
  const std::shared_ptr<::caffe::Blob> blob_;
  const bool is_diff_;
  std::shared_ptr<Dtype> held_;
  std::shared_ptr<void> on_gpu_;
};

}  // namespace

template <typename Dtype>
std::unique_ptr<MemorySource> TensorOf(std::shared_ptr<NetBlob> blob, bool is_diff) {
  return std::make_unique<NetTensor<Dtype>>(std::move(blob), is_diff);
}
template std::unique_ptr<MemorySource> TensorOf<float>(std::shared_ptr<NetBlob>, bool);
template std::unique_ptr<MemorySource> TensorOf<double>(std::shared_ptr<NetBlob>, bool);

SyncedMemory::SyncedMemory() : SyncedMemory(size_t{0}) {}
SyncedMemory::SyncedMemory(size_t size) : source_(std::make_unique<OwnMemory>(size)) {}
SyncedMemory::SyncedMemory(std::unique_ptr<MemorySource> source) : source_(std::move(source)) {}
SyncedMemory::~SyncedMemory() = default;

const void* SyncedMemory::cpu_data() {
  return source_->Cpu(/*writes=*/false);
}
void SyncedMemory::set_cpu_data(void* data) {
  source_->SetCpu(data);
}
const void* SyncedMemory::gpu_data() {
  return source_->Gpu(/*writes=*/false);
}
void SyncedMemory::set_gpu_data(void* data) {
  source_->SetGpu(data);
}
void* SyncedMemory::mutable_cpu_data() {
  return source_->Cpu(/*writes=*/true);
}
void* SyncedMemory::mutable_gpu_data() {
  return source_->Gpu(/*writes=*/true);
}
SyncedMemory::SyncedHead SyncedMemory::head() const {
  return source_->head();
}
size_t SyncedMemory::size() const {
  return source_->size();
}

}  // namespace caffe::bvlc
