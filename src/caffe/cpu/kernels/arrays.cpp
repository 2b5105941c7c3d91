#include "caffe/ops/arrays.hpp"

#include "caffe/cpu/kernels/pointwise.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Affine, Unary<ops::Affine>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RaiseTo, Unary<ops::RaiseTo>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SquareRoot, Unary<ops::SquareRoot>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Sign, Unary<ops::Sign>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SignBit, Unary<ops::SignBit>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Axpby, Binary<ops::Axpby>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Divide, Binary<ops::Divide>);

}  // namespace
}  // namespace caffe::cpu
