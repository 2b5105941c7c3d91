#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/combine.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Combine, EachElement<ops::Combine>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CombineGrad, EachElement<ops::CombineGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Choose, EachElement<ops::Choose>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::ChooseGrad, EachElement<ops::ChooseGrad>);

}  // namespace
}  // namespace caffe::cuda
