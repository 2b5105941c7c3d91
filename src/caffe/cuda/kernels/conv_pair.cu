#include "caffe/ops/conv_pair.hpp"

namespace caffe::cuda {
namespace {

// No plan chooses it: there is no better kernel of pairs.
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::ConvPair, "conv-pair-reference",
                              KernelRank::kReference, ops::MakeInTurn,
                              {.signatures = WideSignatures()});

}  // namespace
}  // namespace caffe::cuda
