#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/correlation.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::Correlation, EachElement<ops::Correlation>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::CorrelationGrad, EachElement<ops::CorrelationGrad>);

}  // namespace
}  // namespace caffe::cuda
