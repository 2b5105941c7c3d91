// Host steps between those of a device.
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <variant>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/kernel.hpp"
#include "work_queue.hpp"

namespace caffe {
namespace {

class CudaHostCallTest : public ::testing::Test {
 protected:
  // The kernel of a call that has no inputs and writes `desc`.
  Kernel KernelOf(const ops::HostCall& call) const {
    const Op op(call);
    OperandDesc output;
    static_cast<TensorDesc&>(output) = desc;
    const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCuda, op.type());
    return std::get<Kernel>(candidates.at(0).factory({op, {}, {&output, 1}, *device}));
  }

  void Run(const Kernel& kernel, void* output) const {
    const TensorView view{desc, output};
    KernelContext context;
    context.outputs = {&view, 1};
    context.stream = &device->compute_stream();
    kernel.run(context);
  }

  const std::shared_ptr<Device> device = MakeDevice(DeviceKind::kCuda, 1);
  const TensorDesc desc{Shape{1}, DType::kFloat};
};

// Allocating on another device would create a context, which takes memory and may be forbidden.
TEST_F(CudaHostCallTest, TakePinnedMemoryOnTheirDevice) {
  const std::shared_ptr<void> output = device->Allocate(desc.bytes());
  const auto nothing = [](const KernelContext&) { return std::vector<Shape>(); };
  for (const bool is_source : {false, true}) {
    cuda_on_host::SetCurrentDevice(0);
    const int64_t before = cuda_on_host::PinnedAllocationsSoFar(0);
    const Kernel kernel = KernelOf({.what = "", .call = nothing, .is_source = is_source});
    cuda_on_host::SetCurrentDevice(0);
    Run(kernel, output.get());
    EXPECT_EQ(cuda_on_host::PinnedAllocationsSoFar(0), before);
  }
}

// The compute stream fills the memory that batches are copied to with zeros, and may be several
// batches later than the stream that copies.
TEST_F(CudaHostCallTest, BatchesArriveInMemoryThatIsZeroed) {
  std::vector<std::shared_ptr<void>> outputs;
  for (int i = 0; i < 3; ++i) outputs.push_back(device->Allocate(desc.bytes()));
  device->Synchronize();
  float next = 0;
  const Kernel kernel = KernelOf({.what = "batches",
                                  .call =
                                      [&](const KernelContext& context) {
                                        *context.output(0).as<float>() = ++next;
                                        return std::vector<Shape>();
                                      },
                                  .is_source = true});
  for (const auto& output : outputs) Run(kernel, output.get());
  for (int i = 0; i < 3; ++i) {
    float found = 0;
    device->CopyToHost(&found, outputs[i].get(), sizeof(found));
    EXPECT_EQ(found, static_cast<float>(i + 1));
  }
}

// Before the call, for what it reads; results are on their way when the next step is launched.
TEST_F(CudaHostCallTest, WaitOnce) {
  const std::shared_ptr<void> output = device->Allocate(desc.bytes());
  float next = 0;
  const Kernel kernel = KernelOf({.what = "", .call = [&](const KernelContext& context) {
                                    *context.output(0).as<float>() += ++next;
                                  }});
  const int64_t before = cuda_on_host::WaitsSoFar();
  for (int i = 0; i < 3; ++i) Run(kernel, output.get());
  EXPECT_EQ(cuda_on_host::WaitsSoFar(), before + 3);
  float found = 0;
  device->CopyToHost(&found, output.get(), sizeof(found));
  EXPECT_EQ(found, 1 + 2 + 3);
}

// A Python layer may compute on another GPU.
TEST_F(CudaHostCallTest, MayLeaveAnotherDeviceCurrent) {
  const std::shared_ptr<void> output = device->Allocate(desc.bytes());
  for (const bool throws : {false, true}) {
    const auto wander = [&](const KernelContext&) {
      cuda_on_host::SetCurrentDevice(2);
      if (throws) throw std::runtime_error("lost its way");
      return std::vector<Shape>();
    };
    const std::vector<Kernel> kernels = {
        KernelOf({.what = "on the host", .call = wander}),
        KernelOf({.what = "batches", .call = wander, .is_source = true}),
        KernelOf({.what = "on the device", .call = wander, .takes_device_memory = true})};
    for (const Kernel& kernel : kernels) {
      device->MakeCurrent();
      if (throws) {
        EXPECT_THROW(Run(kernel, output.get()), std::runtime_error);
      } else {
        Run(kernel, output.get());
      }
      EXPECT_EQ(cuda_on_host::CurrentDevice(), 1);
    }
  }
  device->Synchronize();
}

}  // namespace
}  // namespace caffe
