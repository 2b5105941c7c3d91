#include "caffe/ops/missing.hpp"

#include "caffe/cpu/kernels/pointwise.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::IsKnown, Unary<ops::IsKnown>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::KnownOrZero, Unary<ops::KnownOrZero>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::MeanOfKnown, Binary<ops::MeanOfKnown>);

}  // namespace
}  // namespace caffe::cpu
