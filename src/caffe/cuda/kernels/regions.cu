#include "caffe/cuda/kernels/each_element.cuh"
#include "caffe/ops/regions.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RegionWinner, EachElement<ops::RegionWinner>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RegionMax, EachElement<ops::RegionMax>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RegionMaxGrad, EachElement<ops::RegionMaxGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SensitiveRegionMean,
                      EachElement<ops::SensitiveRegionMean>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::SensitiveRegionMeanGrad,
                      EachElement<ops::SensitiveRegionMeanGrad>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RegionAlign, EachElement<ops::RegionAlign>);
CAFFE_REGISTER_KERNEL(DeviceKind::kCuda, ops::RegionAlignGrad, EachElement<ops::RegionAlignGrad>);

}  // namespace
}  // namespace caffe::cuda
