#include "caffe/net/roofline.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/net/plan_times.hpp"

namespace caffe {
namespace {

// Fractions of the peaks that kernels reach in practice. Streaming kernels reach 80 to 95 % of the
// memory bandwidth. Large convolutions reach half of the tensor cores' peak; small ones reach less,
// but in this model memory or launch time limits them.
constexpr double kMemoryShare = 0.8, kArithmeticShare = 0.5;
// Time between two kernels of a captured graph, including the ramps of both.
constexpr double kLaunchMilliseconds = 0.003;

double PeakOf(const Node& node, const DevicePeaks& peaks) {
  if (node.op.numeric_rule() != NumericRule::kMath) return peaks.float_flops;
  switch (node.signature.data) {
    case DType::kDouble:
      return peaks.double_products;
    case DType::kFloat16:
    case DType::kBFloat16:
      return peaks.half_products;
    default:
      return peaks.tf32_products;
  }
}

double MillisecondsToMove(double bytes, const DevicePeaks& peaks) {
  return 1e3 * bytes / (kMemoryShare * peaks.memory_bytes);
}

double BytesOfStep(const TimedStep& step) {
  double bytes = 0;
  for (const auto* operands : {&step.inputs, &step.outputs}) {
    for (const TimedStep::Operand& operand : *operands)
      bytes += operand.present ? static_cast<double>(operand.bytes()) : 0;
  }
  return bytes;
}

}  // namespace

double RooflineMilliseconds(const Node& node, const DevicePeaks& peaks) {
  if (node.op.is_view()) return 0;
  const double arithmetic = 1e3 * node.Flops() / (kArithmeticShare * PeakOf(node, peaks));
  return kLaunchMilliseconds + std::max(arithmetic, MillisecondsToMove(node.BytesMoved(), peaks));
}

PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update,
                         const DevicePeaks& peaks) {
  PlanTimes times =
      AddUpTimes(net, [&](const Node& node) { return RooflineMilliseconds(node, peaks); });
  if (update)
    times.update_ms = kLaunchMilliseconds + MillisecondsToMove(BytesOfStep(*update), peaks);
  return times;
}

PlanTimes RooflineOfPlan(const Net& net, const std::optional<TimedStep>& update) {
  const Device& device = *net.graph().options.device;
  const std::optional<DevicePeaks> peaks = PeaksOf(device);
  if (!peaks) {
    throw Unsupported(StrCat("net '", net.name(), "': the peaks of ", device.description(),
                             " are not known; plan for a chip that is not there (--gpu H200), or "
                             "measure this one"));
  }
  return RooflineOfPlan(net, update, *peaks);
}

PlanTimes RooflineOfPlan(const Net& net) {
  return RooflineOfPlan(net, std::nullopt);
}

}  // namespace caffe
