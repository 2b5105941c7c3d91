#include "caffe/solvers/updater.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/update.hpp"

namespace caffe {
namespace {

OperandDesc Present(const TensorDesc& desc) {
  OperandDesc operand;
  static_cast<TensorDesc&>(operand) = desc;
  return operand;
}

Kernel FindKernel(const Op& op, const std::vector<OperandDesc>& inputs,
                  const std::vector<OperandDesc>& outputs, Device& device,
                  size_t* workspace_bytes) {
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), op.type())) {
    KernelOrRefusal answer = candidate.factory({op, inputs, outputs, device});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) {
      *workspace_bytes = std::max(*workspace_bytes, kernel->workspace_bytes);
      return std::move(*kernel);
    }
  }
  throw Unsupported(StrCat("solver: no kernel for ", op.name(), " on ", Name(device.kind())));
}

}  // namespace

Updater::Updater(const UpdateRule& rule, const Larc& larc, Net& net)
    : rule_(rule),
      larc_(larc),
      device_(net.graph().options.device),
      larc_cosines_(net.learnable_params().size()) {
  const std::vector<OperandDesc> number = {Present({Shape{}, DType::kDouble})};
  size_t workspace_bytes = 0;
  const auto find = [&](const Op& op, const std::vector<OperandDesc>& inputs,
                        const std::vector<OperandDesc>& outputs) {
    return FindKernel(op, inputs, outputs, *device_, &workspace_bytes);
  };
  std::vector<Net::LearnableParam> learning;
  std::vector<std::vector<std::shared_ptr<Blob>>> states;
  std::vector<OperandDesc> inputs, outputs;
  for (size_t i = 0; i < net.learnable_params().size(); ++i) {
    Net::LearnableParam param = net.learnable_params()[i];
    const TensorDesc desc = param.blob->data_tensor().desc();
    auto& own = states.emplace_back();
    for (int k = 0; k < rule.num_states(); ++k)
      own.push_back(std::make_shared<Blob>(device_, desc.shape, desc.dtype));
    if (param.lr_mult == 0) continue;     // frozen
    if (larc.is_on()) param.lr_mult = 1;  // LARC's own factor takes its place
    ParamStep& step = steps_.emplace_back();
    step.blob = param.blob;
    step.index = i;
    step.states = own;
    step.has_half_gradient = param.backward_type == DType::kFloat16;
    step.sum_of_squares = find(ops::SumOfSquares{}, {Present(desc)}, number);
    step.dot = find(ops::Dot{}, {Present(desc), Present(desc)}, number);
    step.max_abs = find(ops::MaxAbs{}, {Present(desc)}, number);
    step.gradient_and_history = {TensorView{desc, nullptr}, TensorView{desc, nullptr}};
    inputs.push_back(Present(desc));
    outputs.insert(outputs.end(), 1 + own.size(), Present(desc));
    learning.push_back(param);
  }
  for (int k = 0; k < rule.num_states(); ++k) {
    for (const auto& own : states) history_.push_back(own[k]);
  }
  results_on_device_ = device_->Allocate(kResults * sizeof(double));
  if (steps_.empty()) return;
  scalars_.resize(steps_.size() * UpdateRule::kMaxScalars);
  const TensorDesc scalars{Shape{static_cast<int64_t>(steps_.size()), UpdateRule::kMaxScalars},
                           DType::kDouble};
  scalars_on_device_ = device_->Allocate(scalars.bytes());
  inputs.push_back(Present(scalars));
  update_ = find(rule.MakeOp(learning), inputs, outputs);
  for (const OperandDesc& input : inputs) inputs_.push_back({input, nullptr});
  inputs_.back().data = scalars_on_device_.get();
  for (const OperandDesc& output : outputs) outputs_.push_back({output, nullptr});
  workspace_ = device_->Allocate(workspace_bytes);
}

void Updater::BindTensors() {
  for (size_t i = 0, output = 0; i < steps_.size(); ++i) {
    inputs_[i].data = steps_[i].blob->diff_tensor().data();
    outputs_[output++].data = steps_[i].blob->data_tensor().data();
    for (const std::shared_ptr<Blob>& state : steps_[i].states)
      outputs_[output++].data = state->data_tensor().data();
  }
}

KernelContext Updater::NewContext() {
  KernelContext context;
  context.workspace = workspace_.get();
  context.stream = &device_->compute_stream();
  return context;
}

void Updater::ClearResults() {
  device_->MakeCurrent();
  device_->compute_stream().FillZero(results_on_device_.get(), kResults * sizeof(double));
}

void Updater::Reduce(const Kernel& kernel, std::span<const TensorView> inputs, int result) {
  result_.data = static_cast<double*>(results_on_device_.get()) + result;
  KernelContext context = NewContext();
  context.inputs = inputs;
  context.outputs = {&result_, 1};
  context.accumulate_mask = 1;
  kernel.run(context);
}

Updater::Results Updater::ReadResults() {
  Results results;
  device_->CopyToHost(results.data(), results_on_device_.get(), sizeof(results));
  return results;
}

double Updater::GradientNorm() {
  ClearResults();
  BindTensors();
  for (size_t i = 0; i < steps_.size(); ++i)
    Reduce(steps_[i].sum_of_squares, {&GradientOf(i), 1}, 0);
  return std::sqrt(ReadResults()[0]);
}

Updater::GradientRange Updater::RangeOfGradients() {
  ClearResults();
  BindTensors();
  for (size_t i = 0; i < steps_.size(); ++i)
    Reduce(steps_[i].max_abs, {&GradientOf(i), 1}, steps_[i].has_half_gradient ? 0 : 1);
  const Results largest = ReadResults();
  return {std::isfinite(largest[0]) && std::isfinite(largest[1]), largest[0]};
}

Larc::Norms Updater::NormsOf(size_t index, double gradient_scale) {
  ParamStep& step = steps_[index];
  step.gradient_and_history[0].data = GradientOf(index).data;
  step.gradient_and_history[1].data = step.states[0]->data_tensor().data();
  const std::span<const TensorView> both = step.gradient_and_history;
  ClearResults();
  Reduce(step.sum_of_squares, {&WeightsOf(index), 1}, 0);
  Reduce(step.sum_of_squares, both.first(1), 1);
  Reduce(step.sum_of_squares, both.last(1), 2);
  if (larc_.is_turbo()) Reduce(step.dot, both, 3);
  const Results sums = ReadResults();
  return {.weights = std::sqrt(sums[0]),
          .gradient = std::sqrt(sums[1]) * gradient_scale,
          .history = std::sqrt(sums[2]),
          .gradient_dot_history = sums[3] * gradient_scale};
}

void Updater::Step(const StepScalars& scalars) {
  if (steps_.empty()) return;
  device_->MakeCurrent();
  BindTensors();
  for (size_t i = 0; i < steps_.size(); ++i) {
    StepScalars local = scalars;
    if (larc_.is_on()) {
      local.rate = larc_.LocalRate(scalars, NormsOf(i, scalars.gradient_scale),
                                   &larc_cosines_[steps_[i].index]);
    }
    rule_.FillScalars(local,
                      std::span<double, UpdateRule::kMaxScalars>(
                          scalars_.data() + i * UpdateRule::kMaxScalars, UpdateRule::kMaxScalars));
  }
  KernelContext context = NewContext();
  context.stream->CopyFromHost(scalars_on_device_.get(), scalars_.data(),
                               scalars_.size() * sizeof(double));
  context.inputs = inputs_;
  context.outputs = outputs_;
  update_.run(context);
  for (const ParamStep& step : steps_) {
    step.blob->data_tensor().MarkWritten();
    for (const std::shared_ptr<Blob>& state : step.states) state->data_tensor().MarkWritten();
  }
}

}  // namespace caffe
