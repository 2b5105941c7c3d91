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

Updater::Updater(const UpdateRule& rule, Net& net) : rule_(rule) {
  Device& device = *net.graph().options.device;
  const TensorDesc scalars{Shape{UpdateRule::kMaxScalars}, DType::kDouble};
  for (const Net::LearnableParam& param : net.learnable_params()) {
    ParamStep step;
    step.blob = param.blob;
    step.learns = param.lr_mult != 0;
    const TensorDesc desc = param.blob->data_tensor().desc();
    for (int i = 0; i < rule.num_states(); ++i) {
      step.states.push_back(
          std::make_shared<Blob>(net.graph().options.device, desc.shape, desc.dtype));
    }
    std::vector<OperandDesc> outputs(1 + step.states.size(), Present(desc));
    step.update =
        FindKernel(rule.MakeOp(param), {Present(desc), Present(scalars)}, outputs, device);
    step.sum_of_squares = FindKernel(ops::SumOfSquares{}, {Present(desc)},
                                     {Present({Shape{}, DType::kDouble})}, device);
    step.inputs = {{desc}, {scalars}};
    step.inputs[1].data = scalars_.data();
    step.outputs.assign(outputs.size(), TensorView{desc});
    step.sum_output = {{Shape{}, DType::kDouble}, &gradient_sum_};
    steps_.push_back(std::move(step));
  }
  for (int i = 0; i < rule.num_states(); ++i) {
    for (const ParamStep& step : steps_) history_.push_back(step.states[i]);
  }
}

double Updater::GradientNorm() {
  gradient_sum_ = 0;
  for (ParamStep& step : steps_) {
    if (!step.learns) continue;
    step.inputs[0].data = step.blob->diff_tensor().data();
    KernelContext context;
    context.inputs = {step.inputs.data(), 1};
    context.outputs = {&step.sum_output, 1};
    context.accumulate_mask = 1;
    step.sum_of_squares.run(context);
  }
  return std::sqrt(gradient_sum_);
}

void Updater::Step(const StepScalars& scalars) {
  rule_.FillScalars(scalars, scalars_);
  for (ParamStep& step : steps_) {
    if (!step.learns) continue;
    step.inputs[0].data = step.blob->diff_tensor().data();
    step.outputs[0].data = step.blob->data_tensor().data();
    for (size_t i = 0; i < step.states.size(); ++i) {
      step.outputs[1 + i].data = step.states[i]->data_tensor().data();
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
