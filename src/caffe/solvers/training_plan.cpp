#include "caffe/training_plan.hpp"

#include <algorithm>

#include "caffe/epoch_batches.hpp"
#include "caffe/error.hpp"
#include "caffe/io/layer_position.hpp"
#include "caffe/net/data_memory.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/plan_times.hpp"
#include "caffe/net/roofline.hpp"
#include "caffe/solvers/find_kernel.hpp"
#include "caffe/solvers/run_length.hpp"
#include "caffe/solvers/solver_nets.hpp"
#include "caffe/solvers/update_rule.hpp"

namespace caffe {
namespace {

// Number of batches that test net `index` reads during training.
uint64_t TestBatches(const SolverParameter& param, int index, const Net& net) {
  if (index >= param.test_iter_size()) return BatchesOfEpoch(net).count();  // one epoch
  const int interval = std::max(1, param.test_interval());
  const int tests = param.max_iter() / interval + (param.test_initialization() ? 1 : 0);
  return static_cast<uint64_t>(tests) * static_cast<uint64_t>(param.test_iter(index));
}

bool KnowsEpoch(const Net& net) {
  try {
    BatchesOfEpoch(net);
    return true;
  } catch (const InvalidArgument&) {
    return false;
  }
}

// Files are written from a copy: first of the weights, then of the solver's state.
int64_t SnapshotBytes(const SolverParameter& param, const PlanMemory& memory) {
  const bool is_written = param.snapshot() > 0 || param.snapshot_after_train();
  if (!is_written || param.snapshot_format() == SolverParameter::HDF5) return 0;
  return std::max(memory.parameters * (param.snapshot_diff() ? 2 : 1), memory.solver_state);
}

// The update of all parameters that have a gradient, with the solver's kernel.
TimedStep UpdateStep(const SolverParameter& param, const Net& net) {
  const Graph& graph = net.graph();
  const std::unique_ptr<UpdateRule> rule = MakeUpdateRule(param);
  std::vector<Net::LearnableParam> learning;
  TimedStep step;
  const auto operand = [](const TensorDesc& desc) { return TimedStep::Operand{Present(desc)}; };
  for (const LayerCall& call : graph.calls) {
    for (size_t i = 0; i < call.param_values.size(); ++i) {
      const Value& weights = *call.param_values[i];
      if (weights.owner != nullptr || !call.param_needs_gradient[i]) continue;
      learning.emplace_back();
      step.inputs.push_back(operand(weights.desc));
      step.outputs.insert(step.outputs.end(), 1 + rule->num_states(), operand(weights.desc));
    }
  }
  step.inputs.push_back(operand({Shape{ops::kStepNumbers}, DType::kDouble}));
  step.inputs.push_back(TimedStep::Operand{Absent()});
  const Op op = rule->MakeOp(learning, {});
  step.op = StrCat(op.name(), "[", op.Attributes(), "]");
  const std::vector<OperandDesc> inputs(step.inputs.begin(), step.inputs.end());
  const std::vector<OperandDesc> outputs(step.outputs.begin(), step.outputs.end());
  step.kernel = FindKernel(op, inputs, outputs, graph);
  return step;
}

}  // namespace

TrainingPlan::TrainingPlan(const SolverParameter& param, NetOptions options,
                           const PrepareNet& prepare)
    : solver_states_(SolverStatesPerParameter(param)), param_(param) {
  CheckLength(param);
  options.allocate = false;
  options = TrainNetOptions(param, std::move(options), solver_states_);
  train_net_ = MakeTrainNet(param, options, prepare);
  param_ = RunLength(param, *train_net_, std::max(1, options.ranks)).Resolved();
  for (TestNetDefinition& definition : TestNetDefinitions(param, options.lenient)) {
    const NetOptions test = TestNetOptions(options, definition);
    if (prepare) WithLayerPosition(test.file, TEST, [&] { prepare(&definition.param); });
    auto net = std::make_unique<Net>(definition.param, test);
    if (definition.is_implied && !KnowsEpoch(*net)) continue;  // a run would skip this test
    test_nets_.push_back(std::move(net));
  }
}

PlanMemory TrainingPlan::Memory() const {
  PlanMemory memory = MemoryOfPlan(*train_net_, solver_states_);
  for (const std::unique_ptr<Net>& net : test_nets_) {
    const PlanMemory test = MemoryOf(net->graph(), 0);
    memory.test_nets += test.total() - test.parameters;
  }
  if (memory.program == 0) return memory;  // the device has its own memory
  memory.snapshot = SnapshotBytes(param_, memory);
  DataMemory data;
  data.Add(*train_net_, static_cast<uint64_t>(param_.max_iter()) *
                            static_cast<uint64_t>(std::max(1, param_.iter_size())));
  for (size_t i = 0; i < test_nets_.size(); ++i)
    data.Add(*test_nets_[i], TestBatches(param_, static_cast<int>(i), *test_nets_[i]));
  data.PutInto(&memory);
  return memory;
}

PlanTimes TrainingPlan::Times() const {
  return TimesOfPlan(*train_net_, UpdateStep(param_, *train_net_));
}

PlanTimes TrainingPlan::Roofline() const {
  return RooflineOfPlan(*train_net_, UpdateStep(param_, *train_net_));
}

}  // namespace caffe
