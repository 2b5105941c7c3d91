#include "caffe/distributed/nccl/rounded_copy.hpp"

#include <variant>

#include "caffe/error.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe::nccl {
namespace {

Kernel CastKernel(const TensorDesc& from, const TensorDesc& to, Device& device) {
  const Op op(ops::Cast{});
  OperandDesc input, output;
  static_cast<TensorDesc&>(input) = from;
  static_cast<TensorDesc&>(output) = to;
  const KernelCandidate& reference =
      KernelRegistry::Get().Candidates(device.kind(), op.type()).back();
  return std::get<Kernel>(reference.factory({op, {&input, 1}, {&output, 1}, device}));
}

}  // namespace

void RoundedCopy::Reserve(const TensorView& tensor, DType type, Device& device) {
  const TensorDesc rounded{tensor.shape, type};
  if (rounded.bytes() > bytes_) {
    memory_ = device.Allocate(rounded.bytes());
    bytes_ = rounded.bytes();
  }
  if (kernels_.contains({tensor.dtype, type})) return;
  kernels_[{tensor.dtype, type}] = CastKernel(tensor, rounded, device);
  kernels_[{type, tensor.dtype}] = CastKernel(rounded, tensor, device);
  // The first launch loads a kernel's code.
  Stream& stream = device.compute_stream();
  device.MakeCurrent();
  CopyBack(CopyOf(tensor, type, stream), tensor, stream);
}

TensorView RoundedCopy::CopyOf(const TensorView& tensor, DType type, Stream& stream) const {
  const TensorView rounded{{tensor.shape, type}, memory_.get()};
  CAFFE_ASSERT(rounded.bytes() <= bytes_, "no memory is reserved for a rounded tensor");
  Convert(tensor, rounded, stream);
  return rounded;
}

void RoundedCopy::CopyBack(const TensorView& rounded, const TensorView& tensor,
                           Stream& stream) const {
  Convert(rounded, tensor, stream);
}

void RoundedCopy::Convert(const TensorView& from, const TensorView& to, Stream& stream) const {
  KernelContext context;
  context.inputs = {&from, 1};
  context.outputs = {&to, 1};
  context.stream = &stream;
  kernels_.at({from.dtype, to.dtype}).run(context);
}

}  // namespace caffe::nccl
