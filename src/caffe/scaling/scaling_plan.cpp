#include "caffe/scaling_plan.hpp"

#include <omp.h>

#include <map>
#include <optional>

#include "caffe/device/device_peaks.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/distributed/threads_of_rank.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

// Reductions after the gradients: the mean of the loss, and which ranks ask for a snapshot or a
// stop. See Poll() in solvers/solver_impl.cpp.
constexpr int64_t kLossBytes = sizeof(double), kActionBytes = 3 * sizeof(double);

// From NCCL's own performance model (src/graph/tuning.cc): the time of a reduction before its first
// message, and of a message over NVLink, in the protocol for large messages.
constexpr double kNcclStart = 8.4e-6, kNvlinkLatency = 1.9e-6;
// Share of a link's peak that a reduction reaches.
constexpr double kLinkShare = 0.8;

}  // namespace

StepTimeline TimelineOf(const Net& net, const PlanTimes& times, int passes) {
  const Graph& graph = net.graph();
  const Program program = Assemble(graph);
  CAFFE_ASSERT(program.copies.size() + times.step_ms.size() == program.steps.size());
  StepTimeline timeline;
  timeline.update_ms = times.update_ms;
  timeline.images = times.batch * passes;
  timeline.forward_ms =
      times.weight_copies_ms + (passes - 1) * (times.forward_ms + times.backward_ms);
  for (size_t i = 0; i < times.step_ms.size(); ++i) {
    const Program::Step& step = program.steps[program.copies.size() + i];
    const double milliseconds = times.step_ms[i].value_or(0);
    if (step.direction == Direction::kForward && timeline.backward_ms.empty()) {
      timeline.forward_ms += milliseconds;
      continue;
    }
    timeline.backward_ms.push_back(milliseconds);
    for (const int gradient : step.final_gradients) {
      const TensorDesc& desc = program.tensors[gradient].desc;
      timeline.gradients.push_back({timeline.backward_ms.size() - 1, desc.count(), desc.dtype,
                                    graph.values()[gradient].layer});
    }
  }
  const NetParameter& definition = net.definition();
  if (definition.has_reduce_type())
    timeline.wire = DTypeFromProto(definition.reduce_type(), "reduce_type");
  std::map<DType, int64_t> statistics;  // those of one type are sent together
  for (const Value* one : WrittenParams(graph))
    statistics[one->desc.dtype] += static_cast<int64_t>(one->desc.bytes());
  for (const auto& [dtype, bytes] : statistics) timeline.small_reductions.push_back(bytes);
  timeline.small_reductions.push_back(kLossBytes);
  timeline.small_reductions.push_back(kActionBytes);
  return timeline;
}

int UseThreadsOfRank(int ranks_on_machine) {
  static const int at_start = omp_get_max_threads();
  const int threads = ThreadsOfRank(ranks_on_machine, at_start);
  omp_set_num_threads(threads);
  return threads;
}

Network NetworkOf(const Net& net, int ranks_per_machine, const HostCost& host) {
  const Device& device = *net.graph().options.device;
  Network network{.ranks_per_machine = ranks_per_machine};
  if (device.is_host_accessible()) {
    network.host = host;
    network.latency_within = host.latency;
    network.processors = NumProcessors();
    network.threads = device.num_threads();
    return network;
  }
  network.algorithm = ReductionAlgorithm::kRingOrTree;
  network.start = kNcclStart;
  network.latency_within = kNvlinkLatency;
  if (const std::optional<DevicePeaks> peaks = PeaksOf(device))
    network.bandwidth_within = kLinkShare * peaks->link_bytes;
  return network;
}

ScalingRow PredictRow(const Net& net, const StepTimeline& timeline, const Network& network,
                      int ranks) {
  return {.device = net.graph().options.device->description(),
          .timeline = timeline,
          .network = network,
          .as_set = PredictStep(timeline, network, ranks, net.definition().reduce_buckets()),
          .best = BestBuckets(timeline, network, ranks)};
}

}  // namespace caffe
