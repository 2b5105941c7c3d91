#include "caffe/split_choice.hpp"

#include <algorithm>
#include <cstdio>

#include "caffe/distributed/wire_type.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

// Measured by `caffe plan --ranks` on two cores of an AMD EPYC (Zen 4) connected by TCP.
constexpr HostCost kAssumedHost{
    .per_message = 3e-6, .per_byte = 0.17e-9, .per_summed_byte = 0.05e-9, .latency = 6e-6};

Network AssumedNetwork() {
  Network network;
  network.host = kAssumedHost;
  network.latency = network.latency_within = kAssumedHost.latency;
  return network;
}

bool SharesParameters(const Graph& graph, const LayerCall& call) {
  const auto is_own = [&](const Value* value) {
    return value != nullptr && std::ranges::count(call.param_values, value) > 0;
  };
  return std::ranges::any_of(graph.values(), [&](const Value& value) {
    return value.owner != nullptr && (is_own(&value) || is_own(value.owner));
  });
}

bool CanBeSplit(const Graph& graph, const LayerCall& call, int ranks) {
  const LayerParameter& param = call.layer->param();
  return call.layer->type() == "InnerProduct" && !param.inner_product_param().transpose() &&
         (!param.has_parallel() || param.parallel() == LayerParameter::SPLIT_OUTPUT) &&
         call.params[0].shape[0] >= ranks && !SharesParameters(graph, call);
}

// Adds the data that the layer's steps exchange: rows, outputs, and the gradients of both
// (passes/split_over_ranks.cpp).
void AddExchanges(const LayerCall& call, int ranks, int passes, SplitChoice* choice) {
  const auto forward = static_cast<double>(SizeOf(call.types.forward));
  const auto backward = static_cast<double>(SizeOf(call.types.backward));
  const auto outputs = static_cast<double>(call.tops[0]->desc.count()) / ranks;
  const auto inputs = static_cast<double>(call.bottoms[0]->desc.count());
  const bool goes_down = call.bottom_needs_gradient[0];
  const double of_pass =
      (inputs + outputs) * forward + outputs * backward + (goes_down ? inputs * backward : 0);
  choice->exchanged_bytes = passes * of_pass;
  choice->exchanges = passes * (goes_down ? 4 : 3);
}

double GradientBytes(const LayerCall& call, DType wire) {
  double bytes = 0;
  for (size_t i = 0; i < call.params.size(); ++i) {
    const TensorDesc& desc = call.param_values[i]->desc;
    if (!call.param_needs_gradient[i]) continue;
    bytes +=
        static_cast<double>(desc.count()) * static_cast<double>(SizeOf(WireType(desc.dtype, wire)));
  }
  return bytes;
}

}  // namespace

std::vector<SplitChoice> ChooseSplits(const Net& net, int ranks, bool by_cost, int passes) {
  const Graph& graph = net.graph();
  const NetParameter& definition = net.definition();
  const DType wire = definition.has_reduce_type()
                         ? DTypeFromProto(definition.reduce_type(), "reduce_type")
                         : DType::kDouble;
  const Network network = AssumedNetwork();
  std::vector<SplitChoice> choices;
  for (size_t i = 0; i < graph.calls.size() && ranks > 1; ++i) {
    const LayerCall& call = graph.calls[i];
    if (!CanBeSplit(graph, call, ranks)) continue;
    SplitChoice one{.layer = call.layer->name(), .number = static_cast<int>(i)};
    one.gradient_bytes = GradientBytes(call, wire);
    AddExchanges(call, ranks, passes, &one);
    one.reduction_seconds = CostOfReduction(network, ranks, one.gradient_bytes).seconds;
    one.exchange_seconds =
        CostOfExchanges(network, ranks, one.exchanged_bytes, one.exchanges).seconds;
    one.is_split = call.layer->param().has_parallel() ||
                   (by_cost && one.exchange_seconds < one.reduction_seconds);
    choices.push_back(one);
  }
  return choices;
}

std::vector<std::string> SplitLayersOf(const std::vector<SplitChoice>& choices) {
  std::vector<std::string> names;
  for (const SplitChoice& one : choices) {
    if (one.is_split) names.push_back(one.layer);
  }
  return names;
}

StepTimeline WithSplits(StepTimeline timeline, const std::vector<SplitChoice>& choices, int ranks) {
  double all = 0, updated = 0;  // in elements
  std::vector<StepTimeline::Gradient> reduced;
  for (const StepTimeline::Gradient& gradient : timeline.gradients) {
    const bool is_split = std::ranges::any_of(choices, [&](const SplitChoice& one) {
      return one.is_split && one.number == gradient.layer;
    });
    all += static_cast<double>(gradient.count);
    updated += static_cast<double>(gradient.count) / (is_split ? ranks : 1);
    if (!is_split) reduced.push_back(gradient);
  }
  timeline.gradients = std::move(reduced);
  if (all > 0) timeline.update_of_others_ms = timeline.update_ms * (1 - updated / all);
  for (const SplitChoice& one : choices) {
    if (!one.is_split) continue;
    timeline.exchanged_bytes += one.exchanged_bytes;
    timeline.exchanges += one.exchanges;
  }
  return timeline;
}

std::string FormatSplits(const std::vector<SplitChoice>& choices, int ranks) {
  std::string text = StrCat("Layers that ", ranks, " ranks can split (parallel: SPLIT_OUTPUT):\n");
  if (choices.empty()) return text + "  none\n";
  for (const SplitChoice& one : choices) {
    char numbers[160];
    std::snprintf(numbers, sizeof numbers,
                  "gradients %.4g MB, %.3g ms; exchanged %.4g MB, %.3g ms: ",
                  one.gradient_bytes / 1e6, one.reduction_seconds * 1e3,
                  one.exchanged_bytes * (ranks - 1) / 1e6, one.exchange_seconds * 1e3);
    text += StrCat("  ", one.layer, ": ", numbers, one.is_split ? "split" : "not split", "\n");
  }
  return text;
}

}  // namespace caffe
