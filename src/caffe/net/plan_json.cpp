// Prints a plan as JSON, for `caffe plan --json`.
#include "caffe/io/json.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {
namespace {

void PutMemory(const PlanMemory& memory, JsonObject* bytes) {
  PutJson(bytes, "parameters", memory.parameters);
  PutJson(bytes, "gradients", memory.gradients);
  PutJson(bytes, "solver_state", memory.solver_state);
  PutJson(bytes, "in_and_out", memory.outputs);
  PutJson(bytes, "states", memory.states);
  PutJson(bytes, "activations", memory.activations);
  PutJson(bytes, "workspace", memory.workspace);
  PutJson(bytes, "test_nets", memory.test_nets);
  PutJson(bytes, "read_ahead", memory.read_ahead);
  PutJson(bytes, "databases", memory.databases);
  PutJson(bytes, "snapshot", memory.snapshot);
  PutJson(bytes, "program", memory.program);
  PutJson(bytes, "running", memory.running);
  PutJson(bytes, "total", memory.total());
}

void PutTimes(const PlanTimes& times, JsonObject* object) {
  PutJson(object, "forward_ms", times.forward_ms);
  PutJson(object, "backward_ms", times.backward_ms);
  PutJson(object, "weight_copies_ms", times.weight_copies_ms);
  PutJson(object, "update_ms", times.update_ms);
  PutJson(object, "iteration_ms", times.milliseconds());
  if (const auto rate = times.ImagesPerSecond()) PutJson(object, "images_per_second", *rate);
  PutJson(object, "steps_measured", times.measured);
  PutJson(object, "host_calls", times.host_calls);
  for (const LayerTime& time : times.layers) {
    JsonObject* layer = AddJson(object, "layers");
    PutJson(layer, "name", time.layer);
    PutJson(layer, "forward_ms", time.forward_ms);
    PutJson(layer, "backward_ms", time.backward_ms);
  }
}

}  // namespace

std::string FormatPlanJson(const Net& net, const PlanReport& report) {
  JsonObject root;
  MakeJsonList(&root, "steps");
  size_t index = 0;
  for (const PlanStep& step : PlanSteps(net)) {
    JsonObject* object = AddJson(&root, "steps");
    PutJson(object, "layers", step.layers);
    PutJson(object, "direction", step.is_backward ? "backward" : "forward");
    if (step.is_recomputation) PutJson(object, "recomputes", 1);
    PutJson(object, "op", step.op);
    PutJson(object, "kernel", step.kernel);
    PutJson(object, "operands", step.operands);
    PutJson(object, "rounds", step.rounds);
    PutJson(object, "bytes", step.bytes);
    PutJson(object, "flops", step.flops);
    if (report.times && report.times->step_ms[index])
      PutJson(object, "milliseconds", *report.times->step_ms[index]);
    ++index;
    if (!step.precision_note.empty()) PutJson(object, "precision_note", step.precision_note);
    MakeJsonList(object, "refusals");
    for (const std::string& refusal : step.refusals) AddJson(object, "refusals", refusal);
    MakeJsonList(object, "algorithms");
    for (const std::string& algorithm : step.algorithms) AddJson(object, "algorithms", algorithm);
  }
  for (const PlanPass& pass : PlanPasses(net)) {
    JsonObject* object = AddJson(&root, "passes");
    PutJson(object, "name", pass.name);
    PutJson(object, "seconds", pass.seconds);
    PutJson(object, "nodes_before", pass.nodes_before);
    PutJson(object, "nodes_after", pass.nodes_after);
  }
  for (const PlanFusion& fusion : PlanFusions(net)) {
    JsonObject* object = AddJson(&root, "fusions");
    PutJson(object, "name", fusion.row);
    PutJson(object, "applied", fusion.fired);
    MakeJsonList(object, "refusals");
    for (const std::string& refusal : fusion.refusals) AddJson(object, "refusals", refusal);
  }
  PutMemory(report.memory, JsonField(&root, "memory"));
  if (report.times) PutTimes(*report.times, JsonField(&root, "times"));
  PutJson(&root, "parameter_count", report.memory.parameter_count);
  PutJson(&root, "net", net.name());
  return FormatJson(root);
}

}  // namespace caffe
