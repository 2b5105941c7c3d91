#include <vector>

#include "caffe/cuda/launch.cuh"
#include "caffe/ops/constant.hpp"

namespace caffe::cuda {
namespace {

// The numbers are copied to the device in y's type when the plan is created.
KernelOrRefusal MakeConstant(const ops::Constant& op, const KernelRequest& request) {
  const OperandDesc& y = request.outputs[0];
  CAFFE_ASSERT(static_cast<int64_t>(op.values->size()) == y.count());
  std::shared_ptr<void> memory;
  if (!request.device.is_described()) {
    memory = request.device.Allocate(y.bytes());
    VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
      const std::vector<T> values(op.values->begin(), op.values->end());
      request.device.CopyFromHost(memory.get(), values.data(), y.bytes());
    });
  }
  return Kernel{"", [memory, bytes = y.bytes()](const KernelContext& ctx) {
                  CAFFE_CUDA_CHECK(cudaMemcpyAsync(ctx.output(0).data, memory.get(), bytes,
                                                   cudaMemcpyDeviceToDevice, StreamOf(ctx)));
                }};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Constant, "constant", KernelRank::kReference,
                              MakeConstant);

}  // namespace
}  // namespace caffe::cuda
