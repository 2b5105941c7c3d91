#include "caffe/ops/conv_pair.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvPair, "conv-pair-reference",
                              KernelRank::kReference, ops::MakeInTurn,
                              {.signatures = {{DType::kDouble, DType::kDouble},
                                              {DType::kFloat, DType::kFloat},
                                              {DType::kInt8, DType::kFloat}}});

}  // namespace
}  // namespace caffe::cpu
