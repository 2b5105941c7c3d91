#include "caffe/ops/steps_in_turn.hpp"

namespace caffe::cpu {
namespace {

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LstmSteps, "lstm-in-turn",
                              KernelRank::kReference, ops::MakeLstmInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::LstmStepsGrad, "lstm-grad-in-turn",
                              KernelRank::kReference, ops::MakeLstmGradInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruSteps, "gru-in-turn",
                              KernelRank::kReference, ops::MakeGruInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruStepsGrad, "gru-grad-in-turn",
                              KernelRank::kReference, ops::MakeGruGradInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruResetAfterSteps, "gru-reset-after-in-turn",
                              KernelRank::kReference, ops::MakeGruResetAfterInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::GruResetAfterStepsGrad,
                              "gru-reset-after-grad-in-turn", KernelRank::kReference,
                              ops::MakeGruResetAfterGradInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RnnSteps, "rnn-in-turn",
                              KernelRank::kReference, ops::MakeRnnInTurn);
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::RnnStepsGrad, "rnn-grad-in-turn",
                              KernelRank::kReference, ops::MakeRnnGradInTurn);

}  // namespace
}  // namespace caffe::cpu
