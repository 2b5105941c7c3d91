#include "caffe/solvers/updater.hpp"

#include <algorithm>
#include <cmath>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

OperandDesc Present(const TensorDesc& desc) {
  OperandDesc operand;
  static_cast<TensorDesc&>(operand) = desc;
  return operand;
}

Kernel FindKernel(const Op& op, const std::vector<OperandDesc>& inputs,
                  const std::vector<OperandDesc>& outputs, Device& device) {
  for (const KernelCandidate& candidate :
       KernelRegistry::Get().Candidates(device.kind(), op.type())) {
    KernelOrRefusal answer = candidate.factory({op, inputs, outputs, device});
    if (Kernel* kernel = std::get_if<Kernel>(&answer)) return std::move(*kernel);
  }
  throw Unsupported(StrCat("solver: no kernel for ", op.name(), " on ", Name(device.kind())));
}

}  // namespace

Updater::Updater(const UpdateRule& rule, const Larc& larc, Net& net)
    : rule_(rule),
      larc_(larc),
      larc_cosines_(net.learnable_params().size()),
      reduced_view_{{Shape{}, DType::kDouble}, &reduced_} {
  Device& device = *net.graph().options.device;
  const TensorDesc scalars{Shape{UpdateRule::kMaxScalars}, DType::kDouble};
  const std::vector<OperandDesc> number = {Present({Shape{}, DType::kDouble})};
  for (Net::LearnableParam param : net.learnable_params()) {
    ParamStep step;
    step.blob = param.blob;
    step.learns = param.lr_mult != 0;
    step.has_half_gradient = param.backward_type == DType::kFloat16;
    if (larc.is_on()) param.lr_mult = 1;  // LARC's own factor takes its place
    const TensorDesc desc = param.blob->data_tensor().desc();
    for (int i = 0; i < rule.num_states(); ++i) {
      step.states.push_back(
          std::make_shared<Blob>(net.graph().options.device, desc.shape, desc.dtype));
    }
    std::vector<OperandDesc> outputs(1 + step.states.size(), Present(desc));
    step.update =
        FindKernel(rule.MakeOp(param), {Present(desc), Present(scalars)}, outputs, device);
    step.sum_of_squares = FindKernel(ops::SumOfSquares{}, {Present(desc)}, number, device);
    step.dot = FindKernel(ops::Dot{}, {Present(desc), Present(desc)}, number, device);
    step.max_abs = FindKernel(ops::MaxAbs{}, {Present(desc)}, number, device);
    step.inputs = {{desc}, {scalars}};
    step.inputs[1].data = scalars_.data();
    step.outputs.assign(outputs.size(), TensorView{desc});
    step.gradient_and_history = {TensorView{desc}, TensorView{desc}};
    steps_.push_back(std::move(step));
  }
  for (int i = 0; i < rule.num_states(); ++i) {
    for (const ParamStep& step : steps_) history_.push_back(step.states[i]);
  }
}

void Updater::BindTensors(ParamStep& step) {
  step.inputs[0].data = step.blob->diff_tensor().data();
  step.outputs[0].data = step.blob->data_tensor().data();
  for (size_t i = 0; i < step.states.size(); ++i) {
    step.outputs[1 + i].data = step.states[i]->data_tensor().data();
  }
}

double Updater::Reduce(const Kernel& kernel, std::span<const TensorView> inputs, double start) {
  reduced_ = start;
  KernelContext context;
  context.inputs = inputs;
  context.outputs = {&reduced_view_, 1};
  context.accumulate_mask = 1;
  kernel.run(context);
  return reduced_;
}

double Updater::GradientNorm() {
  double sum = 0;
  for (ParamStep& step : steps_) {
    if (!step.learns) continue;
    BindTensors(step);
    sum = Reduce(step.sum_of_squares, {step.inputs.data(), 1}, sum);
  }
  return std::sqrt(sum);
}

Updater::GradientRange Updater::RangeOfGradients() {
  double half = 0, other = 0;
  for (ParamStep& step : steps_) {
    if (!step.learns) continue;
    BindTensors(step);
    double& largest = step.has_half_gradient ? half : other;
    largest = Reduce(step.max_abs, {step.inputs.data(), 1}, largest);
  }
  return {std::isfinite(half) && std::isfinite(other), half};
}

Larc::Norms Updater::NormsOf(ParamStep& step, double gradient_scale) {
  const TensorView &gradient = step.inputs[0], &weights = step.outputs[0],
                   &history = step.outputs[1];
  Larc::Norms norms;
  norms.weights = std::sqrt(Reduce(step.sum_of_squares, {&weights, 1}, 0));
  norms.gradient = std::sqrt(Reduce(step.sum_of_squares, {&gradient, 1}, 0)) * gradient_scale;
  norms.history = std::sqrt(Reduce(step.sum_of_squares, {&history, 1}, 0));
  if (larc_.is_turbo()) {
    step.gradient_and_history[0].data = gradient.data;
    step.gradient_and_history[1].data = history.data;
    norms.gradient_dot_history = Reduce(step.dot, step.gradient_and_history, 0) * gradient_scale;
  }
  return norms;
}

void Updater::Step(const StepScalars& scalars) {
  rule_.FillScalars(scalars, scalars_);
  for (size_t i = 0; i < steps_.size(); ++i) {
    ParamStep& step = steps_[i];
    if (!step.learns) continue;
    BindTensors(step);
    if (larc_.is_on()) {
      StepScalars local = scalars;
      local.rate =
          larc_.LocalRate(scalars, NormsOf(step, scalars.gradient_scale), &larc_cosines_[i]);
      rule_.FillScalars(local, scalars_);
    }
    KernelContext context;
    context.inputs = step.inputs;
    context.outputs = step.outputs;
    step.update.run(context);
    step.blob->data_tensor().MarkWritten();
    for (const std::shared_ptr<Blob>& state : step.states) state->data_tensor().MarkWritten();
  }
}

}  // namespace caffe
