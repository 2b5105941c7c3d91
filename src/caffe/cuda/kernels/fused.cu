#include "caffe/ops/fused_in_turn.hpp"

namespace caffe::cuda {
namespace {

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCuda, ops::Fused, "fused-in-turn",
                              KernelRank::kReference, ops::MakeInTurn, ops::InTurnTraits());

}  // namespace
}  // namespace caffe::cuda
