#include "caffe/distributed/nccl/nccl_communicator.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "caffe/distributed/nccl/nccl_group.hpp"
#include "caffe/distributed/nccl/rounded_copy.hpp"
#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

using nccl::Group;
using nccl::RoundedCopy;

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
    case DType::kInt8:
      return ncclInt8;
  }
  throw InternalError("nccl: unknown dtype");
}

class NcclCommunicator final : public Communicator {
 public:
  // `index`: of the device in the group.
  NcclCommunicator(std::shared_ptr<Group> group, size_t index, std::shared_ptr<Communicator> host,
                   std::shared_ptr<Device> device)
      : group_(std::move(group)),
        index_(index),
        host_(std::move(host)),
        device_(std::move(device)),
        stream_(device_->MakeUrgentStream()),
        done_(device_->MakeEvent()) {}

  int rank() const override { return host_->rank(); }
  int ranks() const override { return host_->ranks(); }
  int ranks_in_process() const override { return host_->ranks_in_process(); }

  void Prepare(const TensorView& tensor, DType wire) override {
    if (WireType(tensor.dtype, wire) != tensor.dtype) rounded_.Reserve(tensor, wire, *device_);
  }
  void AllReduceMean(const TensorView& tensor, DType wire, Event& filled) override {
    device_->MakeCurrent();
    stream_->Wait(filled);
    try {
      Reduce(tensor, WireType(tensor.dtype, wire));
    } catch (const DeviceError&) {
      AwaitFirstError();
      throw;
    }
  }

  void AllReduceSum(std::span<double> numbers) override { host_->AllReduceSum(numbers); }
  void AllReduceSumInPass(std::span<double> numbers) override {
    host_->AllReduceSumInPass(numbers);
  }
  void ExchangeInPass(std::span<const std::span<const char>> sent,
                      std::span<const std::span<char>> received) override {
    host_->ExchangeInPass(sent, received);
  }

  std::vector<std::string> AllGather(const std::string& text) override {
    return host_->AllGather(text);
  }

  void Abort(std::exception_ptr error) override {
    host_->Abort(std::move(error));
    group_->Abort();
  }
  void ThrowIfAborted() override { host_->ThrowIfAborted(); }

 private:
  void Reduce(const TensorView& tensor, DType wire) {
    const bool is_rounded = wire != tensor.dtype;
    const TensorView sent = is_rounded ? rounded_.CopyOf(tensor, wire, *stream_) : tensor;
    const bool is_enqueued =
        group_->AllReduceMean(index_, sent.data, static_cast<size_t>(sent.count()),
                              TypeOf(sent.dtype), *stream_, [this] { host_->ThrowIfAborted(); });
    if (!is_enqueued) ThrowWhatEndedIt();
    if (is_rounded) rounded_.CopyBack(sent, tensor, *stream_);
    stream_->Record(*done_);
    while (!done_->IsReached()) {
      host_->ThrowIfAborted();
      if (!group_->IsWell(index_)) ThrowWhatEndedIt();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (!group_->IsWell(index_)) ThrowWhatEndedIt();
  }

  // NCCL may notice that a rank has gone before the ranks are told which one and why. Throws that,
  // if it comes soon.
  void AwaitFirstError() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    while (std::chrono::steady_clock::now() < deadline) {
      host_->ThrowIfAborted();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  [[noreturn]] void ThrowWhatEndedIt() {
    host_->ThrowIfAborted();
    throw InternalError("nccl: aborted without an error");
  }

  const std::shared_ptr<Group> group_;
  const size_t index_;
  const std::shared_ptr<Communicator> host_;
  const std::shared_ptr<Device> device_;
  const std::unique_ptr<Stream> stream_;
  const std::unique_ptr<Event> done_;
  RoundedCopy rounded_;
};

const GpuCommunicatorRegistrar registrar({MakeNcclCommunicators, MakeNcclCommunicator});

}  // namespace

std::vector<std::shared_ptr<Communicator>> MakeNcclCommunicators(const std::vector<int>& gpus) {
  const auto hosts = MakeLocalCommunicators(static_cast<int>(gpus.size()));
  std::vector<std::shared_ptr<Device>> devices;
  for (const int gpu : gpus) devices.push_back(MakeDevice(DeviceKind::kCuda, gpu));
  const auto group =
      std::make_shared<Group>(Group::NewId(), static_cast<int>(gpus.size()), 0, devices, [] {});
  std::vector<std::shared_ptr<Communicator>> communicators;
  for (size_t i = 0; i < gpus.size(); ++i) {
    communicators.push_back(
        std::make_shared<NcclCommunicator>(group, i, hosts[i], std::move(devices[i])));
  }
  return communicators;
}

std::shared_ptr<Communicator> MakeNcclCommunicator(std::shared_ptr<Communicator> host, int gpu) {
  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda, gpu);
  const std::string id = host->AllGather(host->rank() == 0 ? Group::NewId() : "").front();
  const auto group = std::make_shared<Group>(id, host->ranks(), host->rank(), std::vector{device},
                                             [&] { host->ThrowIfAborted(); });
  return std::make_shared<NcclCommunicator>(group, 0, std::move(host), device);
}

}  // namespace caffe
