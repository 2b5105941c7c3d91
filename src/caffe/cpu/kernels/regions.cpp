#include "caffe/ops/regions.hpp"

#include "caffe/cpu/kernels/each_element.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RegionWinner, EachElement<ops::RegionWinner>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RegionMax, EachElement<ops::RegionMax>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RegionMaxGrad, EachElement<ops::RegionMaxGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SensitiveRegionMean,
                      EachElement<ops::SensitiveRegionMean>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::SensitiveRegionMeanGrad,
                      EachElement<ops::SensitiveRegionMeanGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RegionAlign, EachElement<ops::RegionAlign>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::RegionAlignGrad, EachElement<ops::RegionAlignGrad>);

}  // namespace
}  // namespace caffe::cpu
