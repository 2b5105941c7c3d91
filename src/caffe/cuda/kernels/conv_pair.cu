#include "caffe/ops/conv_pair.hpp"

namespace caffe::cuda {
namespace {

// No plan selects it, because there is no better kernel for pairs.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvPair, "conv-pair-reference",
                              KernelRank::kReference, ops::MakeInTurn,
                              {.signatures = WideSignatures()});

}  // namespace
}  // namespace caffe::cuda
