#include "caffe/solvers/gradient_norm.hpp"

#include <array>
#include <cmath>

#include "caffe/ops/update.hpp"
#include "caffe/solvers/find_kernel.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

GradientNorm::GradientNorm(const TrainingNet& net,
                           const std::vector<Net::LearnableParam>& parameters)
    : net_(net), parameters_(parameters) {
  if (parameters_.empty()) return;
  const ops::MeasureParameters op{std::vector<bool>(parameters_.size())};
  std::vector<OperandDesc> inputs;
  for (const Net::LearnableParam& param : parameters_) {
    const TensorDesc desc = param.blob->data_tensor().desc();
    inputs.insert(inputs.end(), {Present(desc), Absent(), Absent()});
    inputs_.insert(inputs_.end(), {TensorView{desc, nullptr}, {}, {}});
  }
  const auto rows = static_cast<int64_t>(parameters_.size()) + 1;
  const TensorDesc desc{Shape{rows * ops::kMeasures}, DType::kDouble};
  memory_ = net_.device()->Allocate(desc.bytes());
  measures_ = {desc, memory_.get()};
  const std::vector<OperandDesc> outputs = {Present(desc)};
  kernel_ = FindKernel(op, inputs, outputs, net_.graph());
  workspace_ = net_.device()->Allocate(kernel_.workspace_bytes);
}

double GradientNorm::Measure() {
  if (parameters_.empty()) return 0;
  Device& device = *net_.device();
  device.MakeCurrent();
  for (size_t i = 0; i < parameters_.size(); ++i)
    inputs_[3 * i].data = parameters_[i].blob->diff_tensor().data();
  KernelContext context;
  context.inputs = inputs_;
  context.outputs = {&measures_, 1};
  context.workspace = workspace_.get();
  context.stream = &device.compute_stream();
  kernel_.run(context);
  std::array<double, ops::kMeasures> total{};
  const size_t offset = parameters_.size() * ops::kMeasures;
  device.CopyToHost(total.data(), measures_.as<double>() + offset, sizeof(total));
  return std::sqrt(total[ops::kGradientSquares]);
}

}  // namespace caffe
