#include "caffe/ops/fused_in_turn.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Fused, "fused-in-turn", KernelRank::kReference,
                              ops::MakeInTurn, ops::InTurnTraits());

}  // namespace
}  // namespace caffe::cpu
