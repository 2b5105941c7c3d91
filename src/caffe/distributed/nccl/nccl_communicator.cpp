#include "caffe/distributed/nccl/nccl_communicator.hpp"

#include <shared_mutex>

#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "caffe/distributed/nccl/nccl_library.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using nccl::Check;
using nccl::GetLibrary;

ncclDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
      return ncclFloat64;
    case DType::kFloat:
      return ncclFloat32;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBFloat16:
      return ncclBfloat16;
    case DType::kUInt8:
      return ncclUint8;
  }
  throw InternalError("nccl: unknown dtype");
}

// NCCL's communicators of all ranks: an abort has to reach each, for their kernels wait for one
// another.
class Group {
 public:
  explicit Group(const std::vector<int>& gpus) : communicators_(gpus.size()) {
    Check(
        GetLibrary().CommInitAll(communicators_.data(), static_cast<int>(gpus.size()), gpus.data()),
        "ncclCommInitAll");
  }
  ~Group() {
    for (ncclComm_t communicator : communicators_) {
      if (!is_aborted_) GetLibrary().CommDestroy(communicator);
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // False after an abort. `enqueue` must not wait for other ranks.
  template <typename Fn>
  bool Enqueue(int rank, const Fn& enqueue) {
    std::shared_lock lock(mutex_);
    if (!is_aborted_) enqueue(communicators_[static_cast<size_t>(rank)]);
    return !is_aborted_;
  }

  void Abort() {
    std::lock_guard lock(mutex_);
    if (is_aborted_) return;
    is_aborted_ = true;
    for (ncclComm_t communicator : communicators_) GetLibrary().CommAbort(communicator);
  }

 private:
  std::shared_mutex mutex_;
  bool is_aborted_ = false;
  std::vector<ncclComm_t> communicators_;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Group> group, std::shared_ptr<Communicator> host, int gpu)
      : group_(std::move(group)), host_(std::move(host)), gpu_(gpu) {
    Check(cudaSetDevice(gpu_), "cudaSetDevice");
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    Check(cudaEventCreateWithFlags(&filled_, cudaEventDisableTiming), "cudaEventCreate");
    Check(cudaMalloc(&warm_up_, sizeof(float)), "cudaMalloc");
  }
  ~NcclCommunicator() override {
    cudaFree(warm_up_);
    cudaEventDestroy(filled_);
    cudaStreamDestroy(stream_);
  }

  int rank() const override { return host_->rank(); }
  int ranks() const override { return host_->ranks(); }

  void AllReduceMean(const TensorView& tensor, Stream& filled_by) override {
    Check(cudaSetDevice(gpu_), "cudaSetDevice");
    Check(cudaEventRecord(filled_, static_cast<cudaStream_t>(filled_by.native())),
          "cudaEventRecord");
    Check(cudaStreamWaitEvent(stream_, filled_, 0), "cudaStreamWaitEvent");
    const bool is_under_way =
        Enqueue(tensor.data, static_cast<size_t>(tensor.count()), TypeOf(tensor.dtype));
    const cudaError_t result = cudaStreamSynchronize(stream_);
    if (!is_under_way || !group_->Enqueue(rank(), [](ncclComm_t) {})) ThrowWhatEndedIt();
    Check(result, "cudaStreamSynchronize");
  }

  void AllReduceSum(std::span<double> numbers) override { host_->AllReduceSum(numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override {
    host_->AllReduceSumInPass(numbers);
  }

  void Abort(std::exception_ptr error) override {
    host_->Abort(std::move(error));
    group_->Abort();
  }

  // NCCL connects the ranks when they first reduce, which needs them all: here, so that no later
  // call waits for another rank while it is being enqueued.
  void WarmUp() { Enqueue(warm_up_, 1, ncclFloat32); }

 private:
  bool Enqueue(void* data, size_t count, ncclDataType_t type) {
    return group_->Enqueue(rank(), [&](ncclComm_t communicator) {
      Check(GetLibrary().AllReduce(data, data, count, type, ncclAvg, communicator, stream_),
            "ncclAllReduce");
    });
  }

  [[noreturn]] void ThrowWhatEndedIt() {
    double nothing = 0;
    host_->AllReduceSum({&nothing, 1});  // throws the error that Abort was given
    throw InternalError("nccl: aborted without an error");
  }

  const std::shared_ptr<Group> group_;
  const std::shared_ptr<Communicator> host_;
  const int gpu_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t filled_ = nullptr;
  void* warm_up_ = nullptr;
};

const GpuCommunicatorRegistrar registrar(MakeNcclCommunicators);

}  // namespace

std::vector<std::shared_ptr<Communicator>> MakeNcclCommunicators(const std::vector<int>& gpus) {
  const auto hosts = MakeLocalCommunicators(static_cast<int>(gpus.size()));
  const auto group = std::make_shared<Group>(gpus);
  std::vector<std::shared_ptr<NcclCommunicator>> communicators;
  for (size_t i = 0; i < gpus.size(); ++i) {
    communicators.push_back(std::make_shared<NcclCommunicator>(group, hosts[i], gpus[i]));
  }
  Check(GetLibrary().GroupStart(), "ncclGroupStart");
  for (const auto& communicator : communicators) communicator->WarmUp();
  Check(GetLibrary().GroupEnd(), "ncclGroupEnd");
  return {communicators.begin(), communicators.end()};
}

}  // namespace caffe
