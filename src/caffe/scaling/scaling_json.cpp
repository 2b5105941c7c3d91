// JSON output of `caffe plan --ranks --json`.
#include <numeric>

#include "caffe/graph/graph.hpp"
#include "caffe/io/json.hpp"
#include "caffe/scaling_plan.hpp"

namespace caffe {
namespace {

void PutTimeline(const StepTimeline& timeline, JsonObject* object) {
  PutJson(object, "step_ms", timeline.milliseconds());
  PutJson(object, "forward_ms", timeline.forward_ms);
  PutJson(object, "backward_ms",
          std::accumulate(timeline.backward_ms.begin(), timeline.backward_ms.end(), 0.0));
  PutJson(object, "update_ms", timeline.update_ms);
  PutJson(object, "images", timeline.images);
  PutJson(object, "gradients", timeline.gradients.size());
  PutJson(object, "small_reductions", timeline.small_reductions.size());
  PutJson(object, "exchanged_bytes", timeline.exchanged_bytes);
}

void PutNetwork(const Network& network, JsonObject* object) {
  PutJson(object, "algorithm",
          network.algorithm == ReductionAlgorithm::kMessages ? "messages" : "ring or tree");
  PutJson(object, "ranks_per_machine", network.ranks_per_machine);
  PutJson(object, "bytes_per_second", network.bandwidth);
  PutJson(object, "latency_seconds", network.latency);
  PutJson(object, "bytes_per_second_within", network.bandwidth_within);
  PutJson(object, "latency_seconds_within", network.latency_within);
  PutJson(object, "processors", network.processors);
  PutJson(object, "threads", network.threads);
  PutJson(object, "seconds_per_message", network.host.per_message);
  PutJson(object, "seconds_per_byte", network.host.per_byte);
  PutJson(object, "seconds_per_summed_byte", network.host.per_summed_byte);
  PutJson(object, "seconds_per_rounded_byte", network.host.per_rounded_byte);
}

void PutPrediction(const ScalingPrediction& prediction, JsonObject* object) {
  PutJson(object, "buckets", prediction.buckets);
  PutJson(object, "step_ms", prediction.step_ms);
  PutJson(object, "communication_ms", prediction.communication_ms);
  PutJson(object, "exposed_ms", prediction.exposed_ms);
  PutJson(object, "images_per_second", prediction.images_per_second);
  PutJson(object, "efficiency", prediction.efficiency);
}

}  // namespace

std::string FormatScalingJson(const Net& net, const std::vector<ScalingRow>& rows) {
  JsonObject root;
  PutJson(&root, "net", net.name());
  PutJson(&root, "is_estimate", net.graph().options.device->is_described());
  for (const ScalingRow& row : rows) {
    JsonObject* object = AddJson(&root, "scaling");
    PutJson(object, "ranks", row.as_set.ranks);
    PutJson(object, "device", row.device);
    PutPrediction(row.as_set, object);
    PutPrediction(row.best, JsonField(object, "best"));
    PutTimeline(row.timeline, JsonField(object, "one_rank"));
    PutNetwork(row.network, JsonField(object, "network"));
  }
  return FormatJson(root);
}

}  // namespace caffe
