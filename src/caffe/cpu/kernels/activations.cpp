#include "caffe/ops/activations.hpp"

#include "caffe/cpu/kernels/pointwise.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Abs, Unary<ops::Abs>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Elu, Unary<ops::Elu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Bnll, Unary<ops::Bnll>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Swish, Unary<ops::Swish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HardSigmoid, Unary<ops::HardSigmoid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HardSwish, Unary<ops::HardSwish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Mish, Unary<ops::Mish>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Clip, Unary<ops::Clip>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Threshold, Unary<ops::Threshold>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Power, Unary<ops::Power>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Exp, Unary<ops::Exp>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Log, Unary<ops::Log>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::AbsGrad, Binary<ops::AbsGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::EluGrad, Binary<ops::EluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::BnllGrad, Binary<ops::BnllGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SwishGrad, Binary<ops::SwishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HardSigmoidGrad, Binary<ops::HardSigmoidGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::HardSwishGrad, Binary<ops::HardSwishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MishGrad, Binary<ops::MishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ClipGrad, Binary<ops::ClipGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::PowerGrad, Binary<ops::PowerGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ExpGrad, Binary<ops::ExpGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::LogGrad, Binary<ops::LogGrad>);

}  // namespace
}  // namespace caffe::cpu
