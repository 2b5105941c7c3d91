// Text output of `caffe plan --ranks`.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "caffe/distributed/wire_type.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/scaling_plan.hpp"

namespace caffe {
namespace {

template <typename... Numbers>
std::string Printed(const char* format, const Numbers&... numbers) {
  char text[256];
  std::snprintf(text, sizeof text, format, numbers...);
  return text;
}

std::string BandwidthText(double bytes_per_second) {
  if (std::isinf(bytes_per_second)) return "no limit of bandwidth";
  return Printed("%.4g GB/s", bytes_per_second / 1e9);
}

std::string LatencyText(double seconds) {
  return Printed("%.3g us", seconds * 1e6);
}

double GradientBytesOnWire(const StepTimeline& timeline) {
  double bytes = 0;
  for (const StepTimeline::Gradient& gradient : timeline.gradients) {
    bytes += static_cast<double>(gradient.count) *
             static_cast<double>(SizeOf(WireType(gradient.dtype, timeline.wire)));
  }
  return bytes;
}

std::string OneRank(const StepTimeline& timeline) {
  const double backward =
      std::accumulate(timeline.backward_ms.begin(), timeline.backward_ms.end(), 0.0);
  const std::string text = Printed(
      "One rank:  %.4g ms for %lld images: forward %.4g, backward %.4g, update %.4g; %zu "
      "gradients, "
      "%.4g MB",
      timeline.milliseconds(), static_cast<long long>(timeline.images), timeline.forward_ms,
      backward, timeline.update_ms, timeline.gradients.size(), GradientBytesOnWire(timeline) / 1e6);
  if (timeline.exchanges == 0) return text + "\n";
  return text + Printed("; sends %.4g MB to each other rank in %d exchanges\n",
                        timeline.exchanged_bytes / 1e6, timeline.exchanges);
}

std::string Describe(const Network& network, bool has_machines) {
  std::string text = StrCat("Network:   ", network.ranks_per_machine, " ranks on a machine");
  if (network.ranks_per_machine > 1) {
    text += StrCat(", ", BandwidthText(network.bandwidth_within), " and ",
                   LatencyText(network.latency_within), " between them");
  }
  if (has_machines) {
    text += StrCat("; ", BandwidthText(network.bandwidth), " and ", LatencyText(network.latency),
                   " between machines");
  }
  text += network.algorithm == ReductionAlgorithm::kMessages ? "; TCP\n" : "; NCCL\n";
  if (network.processors == 0) return text;
  return text + Printed(
                    "Processor: %d for the ranks of a machine, %d threads each; %.3g us for a "
                    "message, %.3g ms for a MB sent or received, %.3g ms for a MB added up\n",
                    network.processors, network.threads, network.host.per_message * 1e6,
                    network.host.per_byte * 1e9, network.host.per_summed_byte * 1e9);
}

std::string RowText(const ScalingRow& row) {
  const ScalingPrediction& as_set = row.as_set;
  return Printed(
      "%8d %10.4g %10.4g %10.4g %10.4g %8.1f %10.4g %10.3f %9d %10.4g %10.3f\n", as_set.ranks,
      row.timeline.milliseconds(), as_set.step_ms, as_set.communication_ms, as_set.exposed_ms,
      as_set.step_ms > 0 ? 100 * as_set.exposed_ms / as_set.step_ms : 0, as_set.images_per_second,
      as_set.efficiency, row.best.buckets, row.best.step_ms, row.best.efficiency);
}

}  // namespace

std::string FormatScaling(const Net& net, const std::vector<ScalingRow>& rows) {
  const ScalingRow& first = rows.at(0);
  const bool has_machines = std::ranges::any_of(
      rows, [](const ScalingRow& row) { return row.as_set.ranks > row.network.ranks_per_machine; });
  const bool is_estimate = net.graph().options.device->is_described();
  std::string text = StrCat("Scaling of '", net.name(), "' on ", first.device,
                            is_estimate ? "; steps are estimates\n" : "\n");
  text += OneRank(first.timeline) + Describe(first.network, has_machines);
  text += StrCat(
      "\n   ranks  one rank       step    reduces    exposed  exposed   images/s "
      "efficiency      best   its step        its\n",
      "               ms         ms         ms         ms        %              (",
      first.as_set.buckets, " buckets)   buckets         ms efficiency\n");
  for (const ScalingRow& row : rows) text += RowText(row);
  const bool is_above_one = std::ranges::any_of(rows, [](const ScalingRow& row) {
    return row.timeline.exchanges > 0 &&
           std::max(row.as_set.efficiency, row.best.efficiency) > 1.0005;  // as printed
  });
  if (is_above_one) {
    text +=
        "An efficiency above 1: each rank computes and updates only its part of the layers that "
        "are split.\n";
  }
  return text;
}

}  // namespace caffe
