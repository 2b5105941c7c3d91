#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/round_to.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Relu, Unary<ops::Relu>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ReluGrad, Binary<ops::ReluGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Sigmoid, Unary<ops::Sigmoid>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SigmoidGrad, Binary<ops::SigmoidGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Tanh, Unary<ops::Tanh>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::TanhGrad, Binary<ops::TanhGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RoundTo, Unary<ops::RoundTo>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ScaleBy, Unary<ops::ScaleBy>);

}  // namespace
}  // namespace caffe::cuda
