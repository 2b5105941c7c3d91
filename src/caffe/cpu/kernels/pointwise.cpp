#include "caffe/ops/pointwise.hpp"

#include "caffe/cpu/kernels/pointwise.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/round_to.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Relu, Unary<ops::Relu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ReluGrad, Binary<ops::ReluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Sigmoid, Unary<ops::Sigmoid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SigmoidGrad, Binary<ops::SigmoidGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Tanh, Unary<ops::Tanh>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::TanhGrad, Binary<ops::TanhGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RoundTo, Unary<ops::RoundTo>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::ScaleBy, Unary<ops::ScaleBy>);

}  // namespace
}  // namespace caffe::cpu
