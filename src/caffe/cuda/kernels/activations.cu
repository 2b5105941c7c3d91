#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/activations.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Abs, Unary<ops::Abs>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Elu, Unary<ops::Elu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Bnll, Unary<ops::Bnll>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Swish, Unary<ops::Swish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::HardSigmoid, Unary<ops::HardSigmoid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::HardSwish, Unary<ops::HardSwish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Mish, Unary<ops::Mish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Gelu, Unary<ops::Gelu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Clip, Unary<ops::Clip>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Threshold, Unary<ops::Threshold>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Power, Unary<ops::Power>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Exp, Unary<ops::Exp>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Log, Unary<ops::Log>);

}  // namespace
}  // namespace caffe::cuda
