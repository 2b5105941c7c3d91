#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/arrays.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Affine, Unary<ops::Affine>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RaiseTo, Unary<ops::RaiseTo>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SquareRoot, Unary<ops::SquareRoot>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Sign, Unary<ops::Sign>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SignBit, Unary<ops::SignBit>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Axpby, Binary<ops::Axpby>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Divide, Binary<ops::Divide>);

}  // namespace
}  // namespace caffe::cuda
