#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/box_losses.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BoxClassLosses, EachElement<ops::BoxClassLosses>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BoxLosses, EachElement<ops::BoxLosses>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BoxScoresGrad, EachElement<ops::BoxScoresGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::BoxLocationsGrad, EachElement<ops::BoxLocationsGrad>);

}  // namespace
}  // namespace caffe::cuda
