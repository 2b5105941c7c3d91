#include "caffe/ops/detect.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

void DetectionOutput(const ops::DetectionOutput& op, const KernelContext& ctx) {
  const std::vector<double> rows =
      ops::DetectionRows(ops::Detect(op, ctx.input(0), ctx.input(1), ctx.input(2)));
  const TensorView& y = ctx.output(0);
  CAFFE_ASSERT(rows.size() <= static_cast<size_t>(y.count()), rows.size());
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    for (int64_t i = 0; i < y.count(); ++i) {
      const bool is_found = static_cast<size_t>(i) < rows.size();
      y.as<T>()[i] = T(is_found ? rows[static_cast<size_t>(i)] : -1.0);
    }
  });
}

CAFFE_REGISTER_KERNEL(DeviceKind::kCpu, ops::DetectionOutput, DetectionOutput);

}  // namespace
}  // namespace caffe::cpu
