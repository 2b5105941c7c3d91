#include "caffe/net/plan_times.hpp"

#include <set>

#include "caffe/error.hpp"
#include "caffe/graph/weight_copies.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/step_times.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/plan/program.hpp"

namespace caffe {
namespace {

// Size of the processor's cache: the steps of a plan that takes more memory evict each other's
// data.
constexpr int64_t kCacheBytes = int64_t{32} << 20;

}  // namespace

PlanTimes AddUpTimes(const Net& net, const std::function<double(const Node&)>& milliseconds) {
  const Graph& graph = net.graph();
  PlanTimes times;
  times.batch = BatchOf(graph);
  for (const std::string& name : net.layer_names()) times.layers.push_back({name});
  // Training changes the weights in each iteration, so their copies are recomputed each time.
  std::set<const Node*> copies;
  for (const WeightCopy& copy : WeightCopies(graph)) {
    copies.insert(copy.node);
    if (graph.options.with_backward) times.weight_copies_ms += milliseconds(*copy.node);
  }
  for (const Node* node : graph.ScheduledNodes()) {
    if (copies.contains(node)) continue;
    std::optional<double>& time = times.step_ms.emplace_back();
    if (node->op.As<ops::HostCall>() != nullptr) {
      ++times.host_calls;
      continue;
    }
    time = WorkOf(*node) == Program::Work::kRun ? milliseconds(*node) : 0;
    LayerTime& layer = times.layers[node->layers.front()];
    const bool is_forward = node->direction == Direction::kForward;
    (is_forward ? layer.forward_ms : layer.backward_ms) += *time;
    (is_forward ? times.forward_ms : times.backward_ms) += *time;
  }
  return times;
}

PlanTimes TimesOfPlan(const Net& net, const std::optional<TimedStep>& update) {
  const Graph& graph = net.graph();
  Device& device = *graph.options.device;
  if (device.is_described()) {
    throw Unsupported(StrCat("net '", net.name(), "': steps cannot be timed on ",
                             device.description(),
                             ", which is only described; plan for a device that is there"));
  }
  StepTimes known(device);
  const bool is_large = MemoryOf(graph, 0).total() > kCacheBytes;
  const auto milliseconds = [&](TimedStep step, bool is_cold) {
    step.is_cold = is_cold;
    return known.SecondsOf(step) * 1e3;
  };
  PlanTimes times = AddUpTimes(net, [&](const Node& node) {
    const bool is_in_loop = node.loop != nullptr;  // whose rounds fit the caches
    return static_cast<double>(node.rounds()) *
           milliseconds(TimedStepOf(node), is_large && !is_in_loop);
  });
  if (update) times.update_ms = milliseconds(*update, is_large);
  times.measured = known.measured();
  known.Save();
  return times;
}

PlanTimes TimesOfPlan(const Net& net) {
  return TimesOfPlan(net, std::nullopt);
}

}  // namespace caffe
