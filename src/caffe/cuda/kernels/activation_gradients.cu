#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/activations.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::AbsGrad, Binary<ops::AbsGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::EluGrad, Binary<ops::EluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BnllGrad, Binary<ops::BnllGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SwishGrad, Binary<ops::SwishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::HardSigmoidGrad, Binary<ops::HardSigmoidGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::HardSwishGrad, Binary<ops::HardSwishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MishGrad, Binary<ops::MishGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::GeluGrad, Binary<ops::GeluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ClipGrad, Binary<ops::ClipGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::PowerGrad, Binary<ops::PowerGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ExpGrad, Binary<ops::ExpGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::LogGrad, Binary<ops::LogGrad>);

}  // namespace
}  // namespace caffe::cuda
