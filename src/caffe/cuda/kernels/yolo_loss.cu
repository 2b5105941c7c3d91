#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/yolo_loss.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::YoloMatches, EachElement<ops::YoloMatches>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::YoloTerms, EachElement<ops::YoloTerms>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::YoloGrad, EachElement<ops::YoloGrad>);

}  // namespace
}  // namespace caffe::cuda
