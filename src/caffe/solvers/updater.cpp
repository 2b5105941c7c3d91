#include "caffe/solvers/updater.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "caffe/solvers/find_kernel.hpp"

namespace caffe {
namespace {

std::vector<OperandDesc> Describe(std::span<const TensorView> views) {
  std::vector<OperandDesc> operands;
  for (const TensorView& view : views) operands.push_back(Present(view));
  return operands;
}

// Never the same number twice, also of two updaters of one net.
uint64_t NextVersion() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

Updater::Updater(const UpdateRule& rule, const ops::DecideStep& decide, Net& net)
    : rule_(rule), net_(net), decide_(decide), device_(net_.device()) {
  ops::MeasureParameters measure;
  std::vector<std::vector<std::shared_ptr<Blob>>> states;
  for (size_t i = 0; i < net.learnable_params().size(); ++i) {
    Net::LearnableParam param = net.learnable_params()[i];
    const TensorDesc desc = param.blob->data_tensor().desc();
    auto& own = states.emplace_back();
    for (int k = 0; k < rule.num_states(); ++k)
      own.push_back(std::make_shared<Blob>(device_, desc.shape, desc.dtype));
    if (param.lr_mult == 0) continue;          // frozen
    if (decide.larc.is_on) param.lr_mult = 1;  // LARC's own factor takes its place
    steps_.push_back({param.blob, i, own});
    learning_.push_back(param);
    measure.is_half.push_back(param.backward_type == DType::kFloat16);
    inputs_.push_back({desc, nullptr});
    outputs_.insert(outputs_.end(), 1 + own.size(), {desc, nullptr});
  }
  for (int k = 0; k < rule.num_states(); ++k) {
    for (const auto& own : states) history_.push_back(own[k]);
  }
  const auto numbers = [&](int64_t count) {
    const TensorDesc desc{Shape{count}, DType::kDouble};
    memory_.push_back(device_->Allocate(desc.bytes()));
    return TensorView{desc, memory_.back().get()};
  };
  const auto count = static_cast<int64_t>(steps_.size());
  state_ = numbers(ops::DecideStep::kStateNumbers + count);
  WriteState({});
  if (steps_.empty()) return;
  step_ = numbers(ops::kStepNumbers);
  inputs_.push_back(step_);
  if (decide_.decides()) {
    measures_ = numbers((count + 1) * ops::kMeasures);
    decision_ = numbers(ops::kFirstRate + count);
    FindDecisionKernels(measure);
  }
  inputs_.push_back(decision_);
  FindUpdateKernel();
  if (decide_.scaling.is_on()) statistics_ = std::make_unique<StatisticsKeeper>(net_);
}

void Updater::FindDecisionKernels(const ops::MeasureParameters& measure) {
  std::vector<OperandDesc> measured;
  for (size_t i = 0; i < steps_.size(); ++i) {
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
void Updater::FindUpdateKernel() {
  net_copies_ = net_.executor().KeptCopies();
  copies_.clear();
  outputs_.resize(steps_.size() * (1 + rule_.num_states()));
  std::vector<int> parameters;
  for (const Executor::KeptCopy& copy : net_copies_) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      const auto index = static_cast<int>(i);
      if (&steps_[i].blob->data_tensor() != copy.weights) continue;
      if (std::count(parameters.begin(), parameters.end(), index) == UpdateRule::kMostCopies)
        continue;
      parameters.push_back(index);
      copies_.push_back(copy);
      outputs_.push_back({copy.copy->desc(), nullptr});
    }
  }
  std::vector<OperandDesc> inputs = Describe(inputs_);
  if (!decide_.decides()) inputs.back() = Absent();
  update_ =
      FindKernel(rule_.MakeOp(learning_, parameters), inputs, Describe(outputs_), net_.graph());
  workspace_ = device_->Allocate(std::max(
      {measure_.workspace_bytes, decide_kernel_.workspace_bytes, update_.workspace_bytes}));
  version_ = NextVersion();
}

ops::StepState Updater::ReadState() const {
  ops::StepState state;
  device_->CopyToHost(&state, state_.data, sizeof(state));
  return state;
}

void Updater::WriteState(const ops::StepState& state) {
  device_->CopyFromHost(state_.data, &state, sizeof(state));
}

const ops::StepState* Updater::state_on_device() const {
  return state_.as<const ops::StepState>();
}

const double* Updater::loss_scale() const {
  return &state_on_device()->scale;
}

std::vector<float> Updater::ReadCosines() const {
  std::vector<double> state(state_.count());
  device_->CopyToHost(state.data(), state_.data, state_.bytes());
  std::vector<float> cosines(history_.size() / std::max(rule_.num_states(), 1));
  for (size_t i = 0; i < steps_.size(); ++i)
    cosines[steps_[i].index] = static_cast<float>(state[ops::DecideStep::kStateNumbers + i]);
  return cosines;
}

void Updater::WriteCosines(const std::vector<float>& cosines) {
  std::vector<double> own;
  for (const ParamStep& step : steps_) own.push_back(cosines.at(step.index));
  device_->CopyFromHost(state_.as<double>() + ops::DecideStep::kStateNumbers, own.data(),
                        own.size() * sizeof(double));
}

void Updater::BeginIteration() {
  if (statistics_ != nullptr) statistics_->Save();
}

void Updater::BindTensors() {
  if (net_.executor().KeptCopies() != net_copies_) FindUpdateKernel();
  bool has_moved = false;
  const auto bind = [&](TensorView& view, SyncedTensor& tensor) {
    void* const data = tensor.data();
    has_moved |= view.data != data;
    view.data = data;
  };
  for (size_t i = 0; i < copies_.size(); ++i)
    bind(outputs_[outputs_.size() - copies_.size() + i], *copies_[i].copy);
  for (size_t i = 0, output = 0; i < steps_.size(); ++i) {
    const size_t weights = output++;
    bind(inputs_[i], steps_[i].blob->diff_tensor());
    bind(outputs_[weights], steps_[i].blob->data_tensor());
    for (const std::shared_ptr<Blob>& state : steps_[i].states)
      bind(outputs_[output++], state->data_tensor());
    if (!decide_.decides()) continue;
    measured_[3 * i] = inputs_[i];
    if (decide_.larc.is_on) measured_[3 * i + 1] = outputs_[weights];
    if (decide_.larc.reads_history()) measured_[3 * i + 2] = outputs_[weights + 1];
  }
  if (has_moved) version_ = NextVersion();
}

void Updater::Run(const Kernel& kernel, std::span<const TensorView> inputs,
                  std::span<const TensorView> outputs, Stream& stream) {
  KernelContext context;
  context.inputs = inputs;
  context.outputs = outputs;
  context.workspace = workspace_.get();
  context.stream = &stream;
  kernel.run(context);
}

void Updater::Schedule(const StepScalars& scalars) {
  rule_.FillNumbers(scalars, numbers_);
}

void Updater::Step(const StepScalars& scalars) {
  Schedule(scalars);
  Prepare();
  Launch(device_->compute_stream());
  Finish();
}

uint64_t Updater::Prepare() {
  if (steps_.empty()) return version_;
  device_->MakeCurrent();
  BindTensors();
  if (statistics_ != nullptr) statistics_->Bind();
  device_->compute_stream().CopyFromHost(step_.data, numbers_.data(), sizeof(numbers_));
  return version_;
}

void Updater::Launch(Stream& stream) {
  if (steps_.empty()) return;
  if (decide_.decides()) {
    Run(measure_, measured_, {&measures_, 1}, stream);
    Run(decide_kernel_, decide_inputs_, decide_outputs_, stream);
  }
  Run(update_, inputs_, outputs_, stream);
  if (statistics_ != nullptr) statistics_->RestoreIfSkipped(decision_, stream);
}

void Updater::Finish() {
  // A skipped step writes no copies, and the host does not know yet: what was stale stays stale.
  made_.clear();
  std::copy_if(copies_.begin(), copies_.end(), std::back_inserter(made_),
               [&](const auto& copy) { return net_.executor().IsMade(copy); });
  if (statistics_ != nullptr) statistics_->MarkWritten();
  for (const ParamStep& step : steps_) {
    step.blob->data_tensor().MarkWritten();
    for (const std::shared_ptr<Blob>& state : step.states) state->data_tensor().MarkWritten();
  }
  for (const Executor::KeptCopy& copy : made_) net_.executor().MarkMade(copy);
}

}  // namespace caffe
