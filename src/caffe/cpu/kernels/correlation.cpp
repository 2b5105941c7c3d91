#include "caffe/ops/correlation.hpp"

#include "caffe/cpu/kernels/each_element.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::Correlation, EachElement<ops::Correlation>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::CorrelationGrad, EachElement<ops::CorrelationGrad>);

}  // namespace
}  // namespace caffe::cpu
