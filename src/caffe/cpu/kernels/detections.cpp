#include "caffe/ops/detect.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void StoreRows(const ops::DetectionOutput& op, double least_vote, const KernelContext& ctx) {
  const std::vector<double> rows =
      ops::DetectionRows(ops::Detect(op, least_vote, ctx.input(0), ctx.input(1), ctx.input(2)));
  const TensorView& y = ctx.output(0);
  CAFFE_ASSERT(rows.size() <= static_cast<size_t>(y.count()), rows.size());
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t i = 0; i < y.count(); ++i) {
      const bool is_found = static_cast<size_t>(i) < rows.size();
      y.as<T>()[i] = T(is_found ? rows[static_cast<size_t>(i)] : -1.0);
    }
  });
}

void DetectionOutput(const ops::DetectionOutput& op, const KernelContext& ctx) {
  StoreRows(op, 0, ctx);
}

void VotedDetectionOutput(const ops::VotedDetectionOutput& op, const KernelContext& ctx) {
  StoreRows(op.detections, op.least_overlap, ctx);
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DetectionOutput, DetectionOutput);
CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::VotedDetectionOutput, VotedDetectionOutput);

}  // namespace
}  // namespace caffe::cpu
