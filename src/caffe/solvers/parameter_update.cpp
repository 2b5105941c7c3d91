#include "caffe/solvers/parameter_update.hpp"

#include <algorithm>
#include <iterator>

#include "caffe/solvers/find_kernel.hpp"

namespace caffe {
namespace {

std::vector<OperandDesc> Describe(std::span<const TensorView> views) {
  std::vector<OperandDesc> operands;
  for (const TensorView& view : views) operands.push_back(Present(view));
  return operands;
}

// The part of the parameter that the rank updates, in its memory or in another tensor of its shape.
TensorDesc DescOf(const LearningParameter& one) {
  TensorDesc desc = one.param.blob->data_tensor().desc();
  if (one.part) desc.shape = Shape{one.part->count};
  return desc;
}
void* DataOf(const LearningParameter& one, SyncedTensor& tensor) {
  const auto element = static_cast<int64_t>(SizeOf(tensor.desc().dtype));
  return static_cast<char*>(tensor.data()) + (one.part ? one.part->begin * element : 0);
}

// Adds norms and takes the maximum of the other measures; NaN stays NaN.
void Join(const double* measures, double* joined) {
  for (int i = 0; i < ops::kMeasures; ++i) {
    if (i != ops::kLargestGradient && i != ops::kLargestHalfGradient) {
      joined[i] += measures[i];
    } else if (!(measures[i] <= joined[i])) {
      joined[i] = measures[i];
    }
  }
}

}  // namespace

ParameterUpdate::ParameterUpdate(const UpdateRule& rule, const ops::DecideStep& decide,
                                 const TrainingNet& net, const TensorView& step,
                                 std::vector<LearningParameter> parameters,
                                 const SumOverRanks& others)
    : rule_(rule),
      decide_(decide),
      net_(net),
      device_(net.device()),
      parameters_(std::move(parameters)),
      others_(others),
      step_(step) {
  for (const LearningParameter& one : parameters_) {
    learning_.push_back(one.param);
    const TensorDesc desc = DescOf(one);
    inputs_.push_back({desc, nullptr});
    outputs_.insert(outputs_.end(), 1 + one.states.size(), {desc, nullptr});
  }
  const size_t count = parameters_.size();
  state_ = AllocateNumbers(ops::DecideStep::kStateNumbers + count);
  if (parameters_.empty()) return;
  inputs_.push_back(step_);
  if (decide_.decides()) {
    measures_ = AllocateNumbers((count + 1) * ops::kMeasures);
    decision_ = AllocateNumbers(ops::kFirstRate + count);
    FindDecisionKernels();
  }
  inputs_.push_back(decision_);
  FindUpdateKernel();
}

TensorView ParameterUpdate::AllocateNumbers(size_t count) {
  const TensorDesc desc{Shape{static_cast<int64_t>(count)}, DType::kDouble};
  memory_.push_back(device_->Allocate(desc.bytes()));
  return {desc, memory_.back().get()};
}

void ParameterUpdate::FindDecisionKernels() {
  ops::MeasureParameters measure;
  std::vector<OperandDesc> measured;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    measure.is_half.push_back(learning_[i].backward_type == DType::kFloat16);
    const OperandDesc operand = Present(inputs_[i]);
    measured.insert(measured.end(), {operand, decide_.larc.is_on ? operand : Absent(),
                                     decide_.larc.reads_history() ? operand : Absent()});
    measured_.insert(measured_.end(), {inputs_[i], {}, {}});
  }
  measure_ = FindKernel(measure, measured, Describe({&measures_, 1}), net_.graph());
  decide_inputs_ = {step_, measures_};
  decide_outputs_ = {decision_, state_};
  decide_kernel_ =
      FindKernel(decide_, Describe(decide_inputs_), Describe(decide_outputs_), net_.graph());
}

// A plan for other shapes may have other copies.
void ParameterUpdate::FindUpdateKernel() {
  net_copies_ = net_.executor().copies().Kept();
  copies_.clear();
  outputs_.resize(parameters_.size() * (1 + rule_.num_states()));
  std::vector<int> copied;
  for (const KeptCopy& copy : net_copies_) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const auto index = static_cast<int>(i);
      if (&learning_[i].blob->data_tensor() != copy.weights) continue;
      if (std::count(copied.begin(), copied.end(), index) == UpdateRule::kMostCopies) continue;
      copied.push_back(index);
      copies_.push_back(copy);
      outputs_.push_back({copy.copy->desc(), nullptr});
    }
  }
  std::vector<OperandDesc> inputs = Describe(inputs_);
  if (!decide_.decides()) inputs.back() = Absent();
  update_ = FindKernel(rule_.MakeOp(learning_, copied), inputs, Describe(outputs_), net_.graph());
  workspace_ = device_->Allocate(std::max(
      {measure_.workspace_bytes, decide_kernel_.workspace_bytes, update_.workspace_bytes}));
}

bool ParameterUpdate::Bind() {
  if (parameters_.empty()) return false;
  bool has_changed = net_.executor().copies().Kept() != net_copies_;
  if (has_changed) FindUpdateKernel();
  const auto bind = [&](TensorView& view, void* data) {
    has_changed |= view.data != data;
    view.data = data;
  };
  for (size_t i = 0; i < copies_.size(); ++i)
    bind(outputs_[outputs_.size() - copies_.size() + i], copies_[i].copy->data());
  for (size_t i = 0, output = 0; i < parameters_.size(); ++i) {
    const LearningParameter& one = parameters_[i];
    const size_t weights = output++;
    bind(inputs_[i], DataOf(one, one.param.blob->diff_tensor()));
    bind(outputs_[weights], DataOf(one, one.param.blob->data_tensor()));
    for (const std::shared_ptr<Blob>& state : one.states)
      bind(outputs_[output++], DataOf(one, state->data_tensor()));
    if (!decide_.decides()) continue;
    measured_[3 * i] = inputs_[i];
    if (decide_.larc.is_on) measured_[3 * i + 1] = outputs_[weights];
    if (decide_.larc.reads_history()) measured_[3 * i + 2] = outputs_[weights + 1];
  }
  return has_changed;
}

void ParameterUpdate::Run(const Kernel& kernel, std::span<const TensorView> inputs,
                          std::span<const TensorView> outputs, Stream& stream) {
  KernelContext context;
  context.inputs = inputs;
  context.outputs = outputs;
  context.workspace = workspace_.get();
  context.stream = &stream;
  kernel.run(context);
}

bool ParameterUpdate::has_parts() const {
  return std::ranges::any_of(parameters_, [](const auto& one) { return one.part.has_value(); });
}

// Combines the measures of parts to those of whole parameters, in the order of the ranks and with
// the same result on all of them. Each rank's measures have their own slots, because some are not
// sums.
void ParameterUpdate::MeasureOverRanks() const {
  const size_t own = parameters_.size() * ops::kMeasures;
  auto* const measures = measures_.as<double>();
  std::vector<double> all(own * static_cast<size_t>(others_.ranks));
  for (size_t i = 0; i < own; ++i) {
    if (parameters_[i / ops::kMeasures].part)
      all[own * static_cast<size_t>(others_.rank) + i] = measures[i];
  }
  others_.sum(all);
  double* const total = measures + own;
  std::fill_n(total, ops::kMeasures, 0.0);
  for (size_t i = 0; i < parameters_.size(); ++i) {
    double* const row = measures + i * ops::kMeasures;
    if (parameters_[i].part) {
      std::fill_n(row, ops::kMeasures, 0.0);
      for (size_t at = i * ops::kMeasures; at < all.size(); at += own) Join(&all[at], row);
    }
    Join(row, total);
  }
}

void ParameterUpdate::Launch(Stream& stream) {
  if (parameters_.empty()) return;
  if (decide_.decides()) {
    Run(measure_, measured_, {&measures_, 1}, stream);
    if (has_parts()) MeasureOverRanks();
    Run(decide_kernel_, decide_inputs_, decide_outputs_, stream);
  }
  Run(update_, inputs_, outputs_, stream);
}

void ParameterUpdate::Finish() {
  // A skipped update writes no copies, and the host does not know yet: stale copies stay stale.
  made_.clear();
  std::copy_if(copies_.begin(), copies_.end(), std::back_inserter(made_),
               [&](const auto& copy) { return net_.executor().copies().IsCurrent(copy); });
  for (const LearningParameter& one : parameters_) {
    one.param.blob->data_tensor().MarkWritten();
    for (const std::shared_ptr<Blob>& state : one.states) state->data_tensor().MarkWritten();
  }
  for (const KeptCopy& copy : made_) net_.executor().copies().MarkCurrent(copy);
}

}  // namespace caffe
