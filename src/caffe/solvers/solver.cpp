#include "caffe/solver.hpp"

#include <glog/logging.h>

#include <chrono>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/clip.hpp"
#include "caffe/solvers/debug_info.hpp"
#include "caffe/solvers/lr_policy.hpp"
#include "caffe/solvers/smoothed_loss.hpp"
#include "caffe/solvers/snapshot.hpp"
#include "caffe/solvers/solver_nets.hpp"

namespace caffe {
namespace {

using Clock = std::chrono::steady_clock;

void CheckParam(const SolverParameter& param) {
  CheckPolicies(param);
  Require(param.iter_size() > 0, "solver: iter_size is ", param.iter_size(), "; it has to be 1 or more");
  Require(param.average_loss() > 0, "solver: average_loss is ", param.average_loss(),
          "; it has to be 1 or more");
  for (const int iterations : param.test_iter()) {
    Require(iterations > 0, "solver: test_iter is ", iterations, "; it has to be 1 or more");
  }
  if (param.larc()) throw Unsupported("solver: larc is not in this build; remove it");
  if (param.eval_type() != "classification") {
    throw Unsupported("solver: eval_type " + param.eval_type() + " is not in this build; remove it");
  }
  if (param.test_and_snapshot_last_epochs() > 0) {
    LOG(WARNING) << "solver: test_and_snapshot_last_epochs is not used; set snapshot and test_interval";
  }
}

std::string FirstNonBlankPart(std::istringstream* list) {
  for (std::string part; std::getline(*list, part, ',');) {
    const size_t first = part.find_first_not_of(" \t");
    if (first == std::string::npos) continue;
    return part.substr(first, part.find_last_not_of(" \t") - first + 1);
  }
  return "";
}

std::string LossText(const Net& net, const std::string& blob, double value) {
  const double weight = net.loss_weight(blob);
  return weight == 0 ? "" : StrCat(" (* ", weight, " = ", weight * value, " loss)");
}

// "    Train net output #3: accuracy = 0.9": indices count values, not blobs.
void LogOutputs(const char* what, const Net& net, const std::vector<std::vector<double>>& outputs) {
  int index = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = net.output_names()[i];
    for (const double value : outputs[i]) {
      LOG(INFO) << "    " << what << " net output #" << index++ << ": " << name << " = " << value
                << LossText(net, name, value);
    }
  }
}

// Adds the values of the net's outputs to `sums`.
void AddOutputs(const Net& net, std::vector<std::vector<double>>* sums) {
  sums->resize(net.output_blobs().size());
  for (size_t i = 0; i < sums->size(); ++i) {
    const Blob& blob = *net.output_blobs()[i];
    std::vector<double>& sum = (*sums)[i];
    const float* values = blob.cpu_data();
    sum.resize(std::max(sum.size(), static_cast<size_t>(blob.count())));
    for (int64_t k = 0; k < blob.count(); ++k) sum[static_cast<size_t>(k)] += values[k];
  }
}

}  // namespace

struct Solver::Impl {
  Impl(const SolverParameter& solver_param, const SolverOptions& solver_options);

  void CreateTrainNet(uint64_t seed, const std::map<std::string, uint64_t>& delivered_records);
  void CreateTestNets(uint64_t seed);
  void ShareWithTestNets();
  void LoadWeights();
  void CheckTrainable() const;

  double ForwardBackward();
  void ApplyUpdate();
  bool IsDisplayed() const { return param.display() > 0 && iter % param.display() == 0; }
  bool IsTestDue() const {
    return param.test_interval() > 0 && iter % param.test_interval() == 0 &&
           (iter > 0 || param.test_initialization());
  }
  void Display();
  void PollActions();
  void SnapshotAndGoOn();

  std::string Snapshot();
  SolverState State() const;
  void CheckState(const SolverState& state) const;
  void Restore(const std::string& state_file);

  bool Test(int index);
  bool TestAll();

  SolverParameter param;
  SolverOptions options;
  std::unique_ptr<UpdateRule> rule;
  std::shared_ptr<Net> net;
  std::vector<std::shared_ptr<Net>> test_nets;
  std::vector<std::shared_ptr<Blob>> history;
  std::unique_ptr<GradientClipper> clipper;
  SmoothedLoss smoothed_loss;
  PolicyState policy;
  int iter = 0;
  int last_snapshot_iter = -1;
  bool stop_requested = false;
  SolverActionFunction action_function;
  std::vector<SolverCallback> callbacks;
  // Of the last displayed iteration, for iterations per second.
  Clock::time_point display_time = Clock::now();
  int display_iter = 0;
};

Solver::Impl::Impl(const SolverParameter& solver_param, const SolverOptions& solver_options)
    : param(solver_param), options(solver_options), smoothed_loss(solver_param.average_loss()) {
  CheckParam(param);
  rule = SolverRegistry::CreateRule(param);
  if (param.snapshot() > 0) CheckSnapshotPrefix(param.snapshot_prefix());
  const uint64_t seed = param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed())
                                                 : Caffe::NextSeed();
  CreateTrainNet(seed, {});
  CreateTestNets(seed);
  LoadWeights();
}

void Solver::Impl::CreateTrainNet(uint64_t seed,
                                  const std::map<std::string, uint64_t>& delivered_records) {
  NetOptions net_options;
  net_options.keep_all = options.keep_all || param.debug_info();
  net_options.seed = seed;
  net_options.delivered_records = delivered_records;
  net.reset();  // its readers hold the data sources that the new ones open
  net = std::make_shared<Net>(TrainNetDefinition(param), net_options);
  CheckTrainable();
  history.clear();
  for (int set = 0; set < rule->history_sets(); ++set) {
    for (const Net::LearnableParam& learnable : net->learnable_params()) {
      history.push_back(std::make_shared<Blob>(net->graph().options.device, learnable.blob->shape(),
                                               learnable.blob->data_tensor().desc().dtype));
    }
  }
  rule->Prepare(*net, history);
  clipper = std::make_unique<GradientClipper>(*net, param.clip_gradients());
}

void Solver::Impl::CheckTrainable() const {
  const auto& learnable = net->learnable_params();
  Require(!learnable.empty(), "solver: net '", net->name(),
          "' has no parameters to train (phase TRAIN); check its include rules");
  bool learns = false, has_loss = false;
  for (const Net::LearnableParam& one : learnable) learns |= one.lr_mult != 0;
  for (const std::string& blob : net->blob_names()) has_loss |= net->loss_weight(blob) != 0;
  if (!learns) LOG(WARNING) << "Net '" << net->name() << "' does not learn: every lr_mult is 0";
  Require(has_loss || options.keep_all, "solver: net '", net->name(),
          "' has no loss (phase TRAIN); add a loss layer or a loss_weight");
  if (!has_loss) LOG(WARNING) << "Net '" << net->name() << "' has no loss";
}

void Solver::Impl::CreateTestNets(uint64_t seed) {
  NetOptions net_options;
  net_options.keep_all = options.keep_all;
  net_options.with_backward = false;
  net_options.seed = seed;
  for (const NetParameter& definition : TestNetDefinitions(param)) {
    test_nets.push_back(std::make_shared<Net>(definition, net_options));
  }
  ShareWithTestNets();
}

void Solver::Impl::ShareWithTestNets() {
  for (const std::shared_ptr<Net>& test_net : test_nets) test_net->ShareTrainedLayersWith(*net);
}

void Solver::Impl::LoadWeights() {
  for (const std::string& list : param.weights()) {
    std::istringstream parts(list);
    for (std::string file; !(file = FirstNonBlankPart(&parts)).empty();) {
      LOG(INFO) << "Finetuning from " << file;
      net->CopyTrainedLayersFrom(file);
      for (const std::shared_ptr<Net>& test_net : test_nets) test_net->CopyTrainedLayersFrom(file);
    }
  }
}

double Solver::Impl::ForwardBackward() {
  const bool keeps_all = options.keep_all || param.debug_info();
  if (keeps_all) net->ClearParamDiffs();
  const bool logs_values = param.debug_info() && IsDisplayed();
  const int passes = param.iter_size();
  double loss = 0;
  for (int i = 0; i < passes; ++i) {
    for (const SolverCallback& callback : callbacks) {
      if (callback.on_forward) callback.on_forward();
    }
    net->set_pass(static_cast<uint64_t>(iter) * static_cast<uint64_t>(passes) + static_cast<uint64_t>(i));
    net->set_accumulate(keeps_all || i > 0);
    loss += net->ForwardBackward();
    if (logs_values) LogForwardValues(*net), LogBackwardValues(*net);
  }
  return loss / passes;
}

void Solver::Impl::ApplyUpdate() {
  AdvancePolicy(param, iter, smoothed_loss.value(), &policy);
  UpdateScalars scalars;
  scalars.iter = iter;
  scalars.rate = LearningRate(param, iter, policy);
  if (IsDisplayed()) LOG(INFO) << "Iteration " << iter << ", lr = " << scalars.rate;
  scalars.momentum = Momentum(param, iter, scalars.rate);
  scalars.weight_decay = WeightDecay(param, iter);
  scalars.gradient_scale = clipper->Factor() / param.iter_size();
  rule->Update(scalars);
  if (param.debug_info() && IsDisplayed()) LogUpdateValues(*net, history);
}

void Solver::Impl::Display() {
  const double seconds = std::chrono::duration<double>(Clock::now() - display_time).count();
  const double rate = seconds > 0 ? (iter - display_iter) / seconds : 0;
  LOG(INFO) << "Iteration " << iter << " (" << rate << " iter/s, " << seconds << "s/"
            << param.display() << " iters), loss = " << smoothed_loss.value();
  std::vector<std::vector<double>> outputs;
  AddOutputs(*net, &outputs);
  LogOutputs("Train", *net, outputs);
  display_time = Clock::now();
  display_iter = iter;
}

void Solver::Impl::PollActions() {
  const SolverAction action = action_function ? action_function() : SolverAction::kNone;
  if (action == SolverAction::kStop) stop_requested = true;
  if (action == SolverAction::kSnapshot) SnapshotAndGoOn();
}

void Solver::Impl::SnapshotAndGoOn() {
  try {
    Snapshot();
  } catch (const Error& error) {
    LOG(ERROR) << "Snapshot of iteration " << iter << " failed: " << error.what()
               << "; training goes on and earlier snapshots stay";
  }
}

std::string Solver::Impl::Snapshot() {
  Require(!param.snapshot_prefix().empty(), "solver: snapshot_prefix is not set; set it to take snapshots");
  // The weights come first, so that a state file never names weights that are not there.
  WriteModel(ModelFileName(param, iter), *net, param.snapshot_diff());
  const std::string file = StateFileName(param, iter);
  WriteSolverState(file, State());
  last_snapshot_iter = iter;
  return file;
}

SolverState Solver::Impl::State() const {
  SolverState state;
  state.set_iter(iter);
  state.set_learned_net(ModelFileName(param, iter));
  state.set_current_step(policy.current_step);
  if (param.lr_policy() == "plateau") {
    state.set_minimum_loss(static_cast<float>(policy.minimum_loss));
    state.set_iter_last_event(policy.iter_last_event);
  }
  for (const std::shared_ptr<Blob>& blob : history) WriteBlob(*blob, false, state.add_history());
  state.set_random_seed(net->seed());
  for (const auto& [layer, records] : net->delivered_records()) {
    DataCursor* cursor = state.add_data_cursor();
    cursor->set_layer(layer);
    cursor->set_records(records);
  }
  state.set_solver_type(param.type());
  state.set_net_name(net->name());
  return state;
}

void Solver::Impl::CheckState(const SolverState& state) const {
  Require(!state.has_solver_type() || state.solver_type() == param.type(), "written by a solver of type ",
          state.solver_type(), ", but this one is ", param.type(), "; start from its weights instead");
  Require(!state.has_net_name() || state.net_name() == net->name(), "written for net '", state.net_name(),
          "', but this one is '", net->name(), "'; start from its weights instead");
  Require(state.history_size() == static_cast<int>(history.size()), "has ", state.history_size(),
          " history blob(s), but solver type ", param.type(), " with net '", net->name(), "' has ",
          history.size(), "; net or solver type differ");
}

void Solver::Impl::Restore(const std::string& state_file) {
  const SolverState state = ReadSolverState(state_file);
  WithContext(state_file, [&] { CheckState(state); });
  const std::string weights = state.learned_net().empty() ? "" : FindLearnedNet(state, state_file);
  std::map<std::string, uint64_t> records;
  for (const DataCursor& cursor : state.data_cursor()) records[cursor.layer()] = cursor.records();
  const uint64_t seed = state.has_random_seed() ? state.random_seed() : net->seed();
  if (seed != net->seed() || records != net->delivered_records()) {
    CreateTrainNet(seed, records);
    ShareWithTestNets();
  }
  WithContext(state_file, [&] {
    for (int i = 0; i < state.history_size(); ++i) {
      WithContext(StrCat("history ", i), [&] { ReadBlob(state.history(i), history[i].get()); });
    }
  });
  if (!weights.empty()) net->CopyTrainedLayersFrom(weights);
  iter = last_snapshot_iter = display_iter = state.iter();
  policy = {state.current_step(), state.minimum_loss(), state.iter_last_event()};
}

bool Solver::Impl::TestAll() {
  for (size_t i = 0; i < test_nets.size(); ++i) {
    if (!Test(static_cast<int>(i))) return false;
  }
  return true;
}

bool Solver::Impl::Test(int index) {
  LOG(INFO) << "Iteration " << iter << ", Testing net (#" << index << ")";
  Net& test_net = *test_nets.at(static_cast<size_t>(index));
  test_net.ShareTrainedLayersWith(*net);
  const int batches = param.test_iter(index);
  std::vector<std::vector<double>> outputs;
  double total_loss = 0;
  for (int i = 0; i < batches; ++i) {
    PollActions();
    if (stop_requested) {
      LOG(INFO) << "Test interrupted.";
      return false;
    }
    float loss = 0;
    test_net.Forward(&loss);
    total_loss += loss;
    AddOutputs(test_net, &outputs);
  }
  for (std::vector<double>& values : outputs) {
    for (double& value : values) value /= batches;
  }
  if (param.test_compute_loss()) LOG(INFO) << "Test loss: " << total_loss / batches;
  LogOutputs("Test", test_net, outputs);
  return true;
}

SolverParameter ReadSolverParameter(const std::string& file) {
  SolverParameter param = ReadSolverText(file);
  param.set_snapshot_prefix(SnapshotPrefix(file, param.snapshot_prefix()));
  return param;
}

Solver::Solver(const SolverParameter& param, const SolverOptions& options)
    : impl_(std::make_unique<Impl>(param, options)) {}
Solver::~Solver() = default;

void Solver::Step(int iterations) {
  Impl& self = *impl_;
  const int stop = self.iter + iterations;
  self.smoothed_loss.Clear();
  self.stop_requested = false;
  while (self.iter < stop) {
    if (self.IsTestDue() && !self.TestAll()) break;
    for (const SolverCallback& callback : self.callbacks) {
      if (callback.on_start) callback.on_start();
    }
    self.smoothed_loss.Add(self.ForwardBackward());
    if (self.IsDisplayed()) self.Display();
    for (const SolverCallback& callback : self.callbacks) {
      if (callback.on_gradients_ready) callback.on_gradients_ready();
    }
    self.ApplyUpdate();
    ++self.iter;
    const bool is_snapshot_due = self.param.snapshot() > 0 && self.iter % self.param.snapshot() == 0;
    if (is_snapshot_due) self.SnapshotAndGoOn();
    self.PollActions();
    if (self.stop_requested) break;
  }
}

void Solver::Solve(const std::string& resume_file) {
  Impl& self = *impl_;
  const SolverParameter& param = self.param;
  Require(param.has_max_iter(), "solver: max_iter is not set; set the number of iterations");
  if (param.snapshot_after_train()) CheckSnapshotPrefix(param.snapshot_prefix());
  LOG(INFO) << "Solving " << self.net->name();
  LOG(INFO) << "Learning Rate Policy: " << param.lr_policy();
  if (!resume_file.empty()) {
    LOG(INFO) << "Restoring previous solver status from " << resume_file;
    Restore(resume_file);
  }
  self.display_time = Clock::now();
  Step(param.max_iter() - self.iter);
  if (param.snapshot_after_train() && self.last_snapshot_iter != self.iter) Snapshot();
  if (self.stop_requested) {
    LOG(INFO) << "Optimization stopped early.";
    return;
  }
  if (self.IsDisplayed()) {
    float loss = 0;
    self.net->Forward(&loss);
    self.smoothed_loss.Add(loss);
    LOG(INFO) << "Iteration " << self.iter << ", loss = " << self.smoothed_loss.value();
  }
  if (param.test_interval() > 0 && self.iter % param.test_interval() == 0) self.TestAll();
  LOG(INFO) << "Optimization Done.";
}

const SolverParameter& Solver::param() const { return impl_->param; }
const std::string& Solver::type() const { return impl_->param.type(); }
const std::shared_ptr<Net>& Solver::net() const { return impl_->net; }
const std::vector<std::shared_ptr<Net>>& Solver::test_nets() const { return impl_->test_nets; }
int Solver::iter() const { return impl_->iter; }
const std::vector<std::shared_ptr<Blob>>& Solver::history() const { return impl_->history; }
double Solver::smoothed_loss() const { return impl_->smoothed_loss.value(); }
void Solver::Restore(const std::string& state_file) { impl_->Restore(state_file); }
std::string Solver::Snapshot() { return impl_->Snapshot(); }
bool Solver::TestAll() { return impl_->TestAll(); }
bool Solver::Test(int test_net) {
  Require(0 <= test_net && test_net < static_cast<int>(impl_->test_nets.size()), "solver: no test net ",
          test_net, "; there are ", impl_->test_nets.size());
  return impl_->Test(test_net);
}
void Solver::SetActionFunction(SolverActionFunction function) {
  impl_->action_function = std::move(function);
}
void Solver::AddCallback(SolverCallback callback) { impl_->callbacks.push_back(std::move(callback)); }

}  // namespace caffe
