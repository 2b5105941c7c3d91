#include "caffe/plan/executor.hpp"

#include <chrono>

#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

Executor::Executor(std::shared_ptr<Graph> graph) : graph_(std::move(graph)) {
  const std::vector<Node*> nodes = graph_->ScheduledNodes();
  steps_.resize(nodes.size());
  step_times_.resize(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    steps_[i].node = nodes[i];
    step_times_[i].node = nodes[i];
  }
}

void Executor::Allocate() {
  Device& device = *graph_->options.device;
  arena_ = device.Allocate(static_cast<size_t>(graph_->arena_bytes));
  workspace_ = device.Allocate(static_cast<size_t>(graph_->workspace_bytes));
  BindOperands();
}

void Executor::BindOperands() {
  const auto make_view = [&](Value* value) -> TensorView {
    if (value == nullptr) return {};
    TensorView view{value->desc, nullptr};
    if (value->arena_offset >= 0)
      view.data = static_cast<char*>(arena_.get()) + value->arena_offset;
    return view;
  };
  for (Step& step : steps_) {
    for (Value* input : step.node->inputs) step.inputs.push_back(make_view(input));
    for (Value* output : step.node->outputs) step.outputs.push_back(make_view(output));
  }
  for (Step& step : steps_) {
    const auto bind = [&](Value* value, TensorView& view, bool is_output) {
      if (value == nullptr || value->arena_offset >= 0) return;
      CAFFE_ASSERT(value->tensor != nullptr, "'", value->name, "' has no memory");
      bound_.push_back({&view, value->tensor, is_output});
    };
    for (size_t i = 0; i < step.inputs.size(); ++i)
      bind(step.node->inputs[i], step.inputs[i], false);
    for (size_t i = 0; i < step.outputs.size(); ++i)
      bind(step.node->outputs[i], step.outputs[i], true);
  }
}

void Executor::RefreshBoundOperands() {
  for (BoundOperand& operand : bound_) operand.view->data = operand.tensor->data();
}

void Executor::Run(const RunOptions& options) {
  if (!arena_) Allocate();
  RefreshBoundOperands();
  const int num_layers = static_cast<int>(graph_->calls.size());
  const int last = options.last_layer < 0 ? num_layers - 1 : options.last_layer;
  for (size_t i = 0; i < steps_.size(); ++i) {
    const Node& node = *steps_[i].node;
    const int layer = node.layers.front();
    if (node.direction != options.direction || layer < options.first_layer || layer > last)
      continue;
    RunStep(i, options);
  }
  for (const BoundOperand& operand : bound_) {
    if (operand.is_output) operand.tensor->MarkWritten();
  }
}

void Executor::RunStep(size_t index, const RunOptions& options) {
  const Step& step = steps_[index];
  KernelContext context;
  context.inputs = step.inputs;
  context.outputs = step.outputs;
  context.workspace = workspace_.get();
  context.random = options.random;
  context.accumulate_mask = step.node->accumulate_mask;
  if (options.accumulate) context.accumulate_mask |= step.node->accumulate_on_request_mask;
  if (!is_profiling_) {
    step.node->kernel.run(context);
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  step.node->kernel.run(context);
  graph_->options.device->Synchronize();
  step_times_[index].seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++step_times_[index].runs;
}

}  // namespace caffe
