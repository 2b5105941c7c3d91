#include "caffe/cuda/kernels/pointwise.cuh"
#include "caffe/ops/missing.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::IsKnown, Unary<ops::IsKnown>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::KnownOrZero, Unary<ops::KnownOrZero>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::MeanOfKnown, Binary<ops::MeanOfKnown>);

}  // namespace
}  // namespace caffe::cuda
