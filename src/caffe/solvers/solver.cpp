#include "caffe/solver.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <deque>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "caffe/common.hpp"
#include "caffe/core/activity.hpp"
#include "caffe/core/fork.hpp"
#include "caffe/detection_score.hpp"
#include "caffe/device/device_fault.hpp"
#include "caffe/error.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/data_parallel.hpp"
#include "caffe/solvers/debug_info.hpp"
#include "caffe/solvers/gradient_scaling.hpp"
#include "caffe/solvers/larc.hpp"
#include "caffe/solvers/log_net.hpp"
#include "caffe/solvers/schedule.hpp"
#include "caffe/solvers/smoothed_loss.hpp"
#include "caffe/solvers/snapshot.hpp"
#include "caffe/solvers/solver_nets.hpp"
#include "caffe/solvers/split_parameters.hpp"
#include "caffe/solvers/statistics_keeper.hpp"
#include "caffe/solvers/step_reports.hpp"
#include "caffe/solvers/training_log.hpp"
#include "caffe/solvers/training_progress.hpp"
#include "caffe/solvers/update_rule.hpp"
#include "caffe/solvers/updater.hpp"
#include "caffe/solvers/watchdog.hpp"
#include "caffe/trace.hpp"

namespace caffe {
namespace {

// What a test batch is remembered by: its loss, then for each output its values and before them how
// many they are.
std::vector<double> TestRecord(float loss, const Net& net) {
  std::vector<double> record = {loss};
  for (const Blob* blob : net.output_blobs()) {
    record.push_back(static_cast<double>(blob->count()));
    record.insert(record.end(), blob->cpu_data(), blob->cpu_data() + blob->count());
  }
  return record;
}

// Takes the values of the next output from a record.
std::vector<float> TakeValues(std::vector<double>::const_iterator* next) {
  const auto count = static_cast<std::ptrdiff_t>(**next);
  const auto begin = *next + 1;
  *next = begin + count;
  return {begin, begin + count};
}

// The rows of a DetectionEvaluate layer, as the blob that they came from on whichever rank.
Blob& FillRows(const std::vector<float>& values, const Blob& like, Blob* rows) {
  const int64_t columns = like.num_axes() > 0 ? like.shape(-1) : 1;
  rows->Reshape(Shape{static_cast<int64_t>(values.size()) / columns, columns});
  std::copy(values.begin(), values.end(), rows->mutable_cpu_data());
  return *rows;
}

// Of the last pass of an iteration.
struct LossOfPass {
  float own = 0;   // of this rank
  float mean = 0;  // over all ranks and passes of the iteration
};

constexpr int kActions = 3;  // that SolverAction has

// What `fn` throws in one of several processes ends the others, too, which may wait for it.
template <typename Fn>
auto EndingAll(const SolverOptions& options, const Fn& fn) {
  try {
    return fn();
  } catch (...) {
    const auto& communicator = options.communicator;
    if (communicator != nullptr && communicator->ranks() > communicator->ranks_in_process()) {
      communicator->Abort(std::current_exception());
    }
    throw;
  }
}

}  // namespace

struct Solver::Impl {
  Impl(const SolverParameter& solver_param, const SolverOptions& solver_options);

  void CheckTrainable() const;
  void CheckSplit() const;
  void CheckSolvable() const;
  void CheckSnapshotSize() const;
  void BuildNets();
  void AgreeOnStart();
  void AgreeOnWeights();
  void Step(int iterations);
  float ForwardBackward();
  LossOfPass LastPass(TrainingPass pass, float earlier);
  bool UpdatesByBucket() const;
  void PrepareIteration();
  TrainingPass NextPass(int index) const;
  bool LossMayLag() const;
  bool UpdatesWithBackward() const;
  void LaunchIteration(AppendedWork* update);
  void LaunchIterationWithUpdate();
  void TakeLosses(size_t left_under_way);
  void TakeLoss(int iteration, float loss);
  void ApplyUpdate();
  StepScalars ScheduleStep();
  void SendReport();
  void TakeReports();
  std::string DescribeFirstNonFinite(bool has_updated);
  [[noreturn]] void ThrowNotANumber(int iteration);
  bool IsDisplayed() const { return param.display() > 0 && iter % param.display() == 0; }
  bool LogsValues() const { return param.debug_info() && IsDisplayed() && parallel.is_root(); }
  bool IsTested() const {
    return param.test_interval() > 0 && iter % param.test_interval() == 0 &&
           (iter > 0 || param.test_initialization());
  }
  void TestAll();
  void Test(size_t index);
  void ReportTest(size_t index, const std::vector<std::vector<double>>& batches);
  void PollDuringTest();
  SolverAction::Enum Poll();
  SolverProgress Progress();
  std::string Snapshot();
  void SnapshotWhileTraining();
  void SnapshotAtEnd();
  void Restore(const std::string& file);
  // Throws InvalidArgument if Restore() or a step has failed while it changed something.
  void CheckRestored() const;
  double LearningRate();
  void Observed(Solver* self, int stop, const std::function<void()>& train);
  void SolveFromHere();

  SolverParameter param;
  SolverOptions options;
  std::string snapshot_prefix;
  uint64_t seed = 0;
  std::unique_ptr<UpdateRule> rule;
  std::shared_ptr<Net> net;
  std::optional<TrainingNet> training_net;  // a view of net
  std::vector<std::shared_ptr<Net>> test_nets;
  std::vector<uint64_t> tested_batches;  // by all ranks, of each test net
  DataParallel parallel;
  std::unique_ptr<Updater> updater;
  std::optional<SplitParameters> split;
  ops::DecideStep decide;
  std::unique_ptr<StepReports> reports;
  ops::StepState step_state;  // as last reported
  int iter = 0;
  int first_iter = 0;  // of this object: at its beginning, or of the snapshot that was restored
  int current_step = 0;
  PlateauState plateau;
  // Where the data layers stood and what the statistics were when the iteration under way began,
  // for runs that go on from there or snapshot it when it is broken off.
  std::optional<std::map<std::string, uint64_t>> records_at_iteration;
  std::optional<StatisticsKeeper> statistics_at_iteration;
  // From the first run on, until one is aborted. One for each process, whose activities it sees.
  ThreadedPtr<Watchdog> watchdog;
  int last_snapshot_iter = -1;
  SmoothedLoss smoothed_loss;
  bool continues_window = false;  // its losses are those before a resumed run
  std::deque<int> launched;       // iterations whose loss is not there yet
  bool stop_requested = false;
  std::function<SolverAction::Enum()> action_function;
  std::vector<Callbacks> callbacks;
  std::optional<TrainingLog> log;  // of worker 0
  std::optional<TrainingProgress> reporter;
  bool is_half_restored = false;
  bool updates_by_bucket = false;  // the step under way
  bool is_half_updated = false;
  std::string restored_from;  // since the last training; empty if nothing was
};

Solver::Impl::Impl(const SolverParameter& solver_param, const SolverOptions& solver_options)
    : param(solver_param),
      options(solver_options),
      parallel(solver_options.communicator, solver_options.trace),
      smoothed_loss(std::max(1, solver_param.average_loss())) {
  parallel.UseShareOfThreads();
  Require(param.average_loss() >= 1, "solver: average_loss is ", param.average_loss(),
          "; it must be at least 1");
  Require(param.iter_size() >= 1, "solver: iter_size is ", param.iter_size(),
          "; it must be at least 1");
  Require(param.max_iter() >= 0, "solver: max_iter is ", param.max_iter(),
          "; it must be 0 or more");
  Require(param.snapshot() >= 0, "solver: snapshot is ", param.snapshot(),
          "; set the iterations between snapshots, or 0 for none on the way");
  Require(std::isfinite(param.clip_gradients()) && param.clip_gradients() != 0,
          "solver: clip_gradients is ", param.clip_gradients(),
          "; leave it out or give a positive norm (0 would make every gradient 0)");
  for (const int batches : param.test_iter()) {
    Require(batches >= 1, "solver: test_iter is ", batches, "; it must be at least 1");
  }
  if (param.has_solver_data_type() && param.solver_data_type() != FLOAT) {
    LOG(WARNING) << "solver: solver_data_type is " << Type_Name(param.solver_data_type())
                 << "; weights and history are kept in float (in double for nets in double)";
  }
  Require(param.eval_type() == "classification" || param.eval_type() == "detection",
          "solver: eval_type is '", param.eval_type(), "'; use classification or detection");
  if (parallel.is_root()) LogSolver(param);
  DetectionScore{param.ap_version()};  // throws for an unknown version
  CheckWatchdog(param);
  CheckSchedule(param);
  rule = MakeUpdateRule(param);
  decide.larc = ParseLarc(param);
  snapshot_prefix = SnapshotPrefix(param, options.file);
  if (param.snapshot() > 0 && parallel.is_root()) CheckSnapshotWritable(snapshot_prefix);
  seed = param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed()) : Caffe::NextSeed();
  seed = std::stoull(parallel.OfRoot(std::to_string(seed)));
  BuildNets();
  if (param.snapshot() > 0 && parallel.is_root()) CheckSnapshotSize();
  for (const std::string& weights : param.weights()) LoadWeights(weights, net.get());
  AgreeOnStart();
}

// Between processes: they train the same, from the same weights.
void Solver::Impl::AgreeOnStart() {
  if (!parallel.spans_processes()) return;
  parallel.Agree(FactsAboutStart(param, *net));
  if (!parallel.TakeFromRoot(WeightTensors(*net))) return;
  LOG(WARNING) << "solver: the weights of rank " << parallel.rank()
               << " were not those of rank 0, which are taken";
}

// Before a snapshot: each process has made the same steps from the same weights.
void Solver::Impl::AgreeOnWeights() {
  if (parallel.spans_processes()) parallel.Agree(FactsAboutWeights(iter, *net));
}

void Solver::Impl::BuildNets() {
  NetOptions train;
  train.gpu = options.gpu;
  train.lenient = options.lenient;
  train.file = options.net_file;
  train.keep_all = options.keep_all || param.debug_info();
  train.seed = seed;
  train.rank = parallel.rank();
  train.ranks = parallel.ranks();
  train = TrainNetOptions(param, train, rule->num_states());
  net = MakeTrainNet(param, train, [this](NetParameter* definition) {
    for (LayerParameter& layer : *definition->mutable_layer()) {
      if (std::ranges::count(options.split_layers, layer.name()) > 0)
        layer.set_parallel(LayerParameter::SPLIT_OUTPUT);
    }
  });
  if (parallel.is_root()) LogNet(*net, SourceOfTrainNet(param), rule->num_states());
  for (const TestNetDefinition& definition : TestNetDefinitions(param, options.lenient)) {
    NetOptions test = TestNetOptions(train, definition);
    test.keep_all = options.keep_all;
    test_nets.push_back(std::make_shared<Net>(definition.param, test));
    if (parallel.is_root()) {
      const int index = static_cast<int>(test_nets.size()) - 1;
      LogNet(*test_nets.back(), SourceOfTestNet(param, index), 0);
    }
    test_nets.back()->ShareTrainedLayersWith(*net);
  }
  tested_batches.assign(test_nets.size(), 0);
  CheckTrainable();
  training_net.emplace(*net);
  if (param.watchdog() == "abort") statistics_at_iteration.emplace(*training_net);
  parallel.Attach(*net);
  decide.clip_gradients = param.clip_gradients();
  decide.scaling = MakeGradientScaleRule(net->definition(), param.precision() == FP16);
  updater = std::make_unique<Updater>(
      *rule, decide, *net, parallel.Buckets(),
      SumOverRanks{parallel.rank(), parallel.ranks(),
                   [this](std::span<double> numbers) { parallel.Sum(numbers); }});
  split.emplace(*net, updater->history(), param.snapshot_diff(), &parallel);
  CheckSplit();
  reports = std::make_unique<StepReports>(training_net->device());
  reporter.emplace(*net, param.iter_size() * parallel.ranks());
  if (!parallel.is_root()) return;
  log.emplace(TrainingLogOptions{.display = param.display(),
                                 .test_loss = param.test_compute_loss(),
                                 .per_class = param.show_per_class_result()});
  reporter->Add(&*log);
}

void Solver::Impl::CheckTrainable() const {
  const auto& params = net->learnable_params();
  Require(!params.empty(), "solver: net '", net->name(),
          "' has no parameters in phase TRAIN; check its include rules");
  if (std::all_of(params.begin(), params.end(), [](const auto& one) { return one.lr_mult == 0; })) {
    LOG(WARNING) << "Net '" << net->name() << "' does not learn: every lr_mult is 0";
  }
  const auto& blobs = net->blob_names();
  const bool has_loss = std::any_of(blobs.begin(), blobs.end(),
                                    [&](const auto& blob) { return net->loss_weight(blob) != 0; });
  Require(has_loss || options.keep_all, "solver: net '", net->name(),
          "' has no loss in phase TRAIN; add a loss layer or a loss_weight");
  if (!has_loss) LOG(WARNING) << "Net '" << net->name() << "' has no loss in phase TRAIN";
}

void Solver::Impl::CheckSplit() const {
  if (!split->are_there()) return;
  const std::string is_split = "solver: a layer of the net has parallel: SPLIT_OUTPUT, ";
  Require(!rule->needs_whole_parameters(), is_split, "but an update of ", param.type(),
          " needs whole parameters; leave parallel out, or use another solver type");
  Require(!param.debug_info(), is_split,
          "but debug_info shows whole parameters in each step; leave one of them out");
}

// Before hours of training, not after them.
void Solver::Impl::CheckSolvable() const {
  Require(param.has_max_iter(), "solver: max_iter is not set; set the number of iterations");
  if (!param.snapshot_after_train() || !parallel.is_root()) return;
  CheckSnapshotWritable(snapshot_prefix);
  CheckSnapshotSize();
}

void Solver::Impl::CheckSnapshotSize() const {
  if (param.snapshot_format() == SolverParameter::HDF5) return;
  uint64_t weight_bytes = 0, history_bytes = 0;
  for (const Net::LearnableParam& one : net->learnable_params()) {
    weight_bytes += one.blob->data_tensor().desc().bytes() * (param.snapshot_diff() ? 2 : 1);
  }
  for (const auto& blob : updater->history()) history_bytes += blob->data_tensor().desc().bytes();
  CheckSnapshotFits(weight_bytes, history_bytes);
}

void Solver::Impl::Step(int iterations) {
  const int64_t stop = int64_t{iter} + iterations;
  if (!std::exchange(continues_window, false)) smoothed_loss.Clear();
  stop_requested = false;
  while (iter < stop) {
    const std::string number = std::to_string(iter);
    const Activity iterating("compute", "computes iteration", number);
    if (statistics_at_iteration) {
      records_at_iteration = training_net->delivered_records();
      statistics_at_iteration->Save();
    }
    if (IsTested()) {
      TestAll();
      if (stop_requested) break;
    }
    for (const Callbacks& callback : callbacks) {
      if (callback.on_start) callback.on_start();
    }
    split->BeginStep();
    if (UpdatesWithBackward()) {
      LaunchIterationWithUpdate();
    } else {
      if (LossMayLag()) {
        LaunchIteration(nullptr);
        // While the device computes this iteration, the host looks at the one before.
        TakeLosses(IsDisplayed() ? 0 : 1);
      } else {
        TakeLoss(iter, ForwardBackward());
      }
      if (IsDisplayed() && parallel.is_root()) reporter->Display(iter, smoothed_loss.mean());
      for (const Callbacks& callback : callbacks) {
        if (callback.on_gradients_ready) callback.on_gradients_ready();
      }
      ApplyUpdate();
    }
    ++iter;
    records_at_iteration.reset();
    const std::string waits = parallel.ReportWaits(iter);
    LOG_IF(INFO, !waits.empty()) << waits;
    const SolverAction::Enum action = Poll();
    if ((param.snapshot() > 0 && iter % param.snapshot() == 0) ||
        action == SolverAction::SNAPSHOT) {
      TakeLosses(0);
      split->GatherAll();
      AgreeOnWeights();
      SnapshotWhileTraining();
    }
    if (action == SolverAction::STOP) {
      stop_requested = true;
      break;
    }
  }
  TakeLosses(0);
  TakeReports();
  split->GatherAll();
}

// A device that the host cannot look into works on while the host goes on, so a loss is asked for
// one iteration later, unless something needs it at once.
bool Solver::Impl::LossMayLag() const {
  return !training_net->device()->is_host_accessible() && parallel.ranks() == 1 &&
         callbacks.empty() && !param.debug_info() && param.lr_policy() != "plateau";
}

// When nothing of the host lies between backward and the update, so that a device can replay both
// as one. Displayed iterations wait for their loss, and what it is made of is to be seen as it was.
bool Solver::Impl::UpdatesWithBackward() const {
  return LossMayLag() && !options.keep_all && !IsDisplayed();
}

// `update` follows the last pass; null where it comes later.
void Solver::Impl::LaunchIteration(AppendedWork* update) {
  PrepareIteration();
  for (int i = 0; i < param.iter_size(); ++i) {
    TrainingPass pass = NextPass(i);
    if (i + 1 == param.iter_size()) pass.appended = update;
    training_net->Launch(pass);
  }
  launched.push_back(iter);
}

void Solver::Impl::LaunchIterationWithUpdate() {
  updater->Schedule(ScheduleStep());
  LaunchIteration(updater.get());
  TakeLosses(1);
  TakeReports();  // of the iteration before, as in ApplyUpdate
  SendReport();
}

void Solver::Impl::SendReport() {
  if (decide.decides()) reports->Send(iter, updater->state_on_device());
}

void Solver::Impl::TakeLosses(size_t left_under_way) {
  while (launched.size() > left_under_way) {
    float loss = 0;
    for (int i = 0; i < param.iter_size(); ++i) loss += net->AwaitLoss();
    const int iteration = launched.front();
    launched.pop_front();
    TakeLoss(iteration, loss / static_cast<float>(param.iter_size()));
  }
}

void Solver::Impl::TakeLoss(int iteration, float loss) {
  // With gradient scaling a bad step is skipped, or ends the run when they do not stop.
  if (std::isnan(loss) && !decide.scaling.is_on()) ThrowNotANumber(iteration);
  smoothed_loss.Add(loss);
  reporter->TakeLoss(iteration, loss, smoothed_loss.mean());
}

void Solver::Impl::PrepareIteration() {
  if (options.keep_all || param.debug_info()) net->ClearParamDiffs();
  updater->BeginIteration();
}

// `index`: within the iteration.
TrainingPass Solver::Impl::NextPass(int index) const {
  // Each rank draws its own random numbers.
  const uint64_t number = static_cast<uint64_t>(iter) * param.iter_size() + index;
  const auto ranks = static_cast<uint64_t>(parallel.ranks());
  return {.number = number * ranks + parallel.rank(),
          .ranks = ranks,
          .accumulate = options.keep_all || param.debug_info() || index > 0,
          .loss_scale = decide.scaling.is_on() ? updater->loss_scale() : nullptr};
}

float Solver::Impl::ForwardBackward() {
  float loss = 0;
  PrepareIteration();
  for (int i = 0; i < param.iter_size(); ++i) {
    for (const Callbacks& callback : callbacks) {
      if (callback.on_forward) callback.on_forward();
    }
    const TrainingPass pass = NextPass(i);
    float pass_loss = 0;
    if (i + 1 < param.iter_size()) {
      loss += pass_loss = training_net->ForwardBackward(pass);
    } else {
      const LossOfPass last = LastPass(pass, loss);
      pass_loss = last.own;
      loss = last.mean;
    }
    if (LogsValues()) LogForwardValues(*net), LogBackwardValues(*net);
    for (const Callbacks& callback : callbacks) {
      if (callback.on_backward) callback.on_backward(pass_loss);
    }
  }
  return loss;
}

// Whether nothing looks at the gradients of this iteration, or would take back its update, before
// all of it is done: then a bucket's parameters are updated while backward goes on. Each rank
// decides for itself, because the bits are the same.
bool Solver::Impl::UpdatesByBucket() const {
  return parallel.ranks() > 1 && training_net->device()->is_host_accessible() &&
         updater->has_buckets() && !IsDisplayed() && callbacks.empty() && !options.keep_all &&
         !param.debug_info() && !statistics_at_iteration && param.lr_policy() != "plateau";
}

// Gradients are added up over the passes of an iteration, so the last one makes them final.
// `earlier`: the losses of the others.
LossOfPass Solver::Impl::LastPass(TrainingPass pass, float earlier) {
  const auto of_iteration = [&](float loss) {
    return (earlier + loss) / static_cast<float>(param.iter_size());
  };
  GradientReducer::Update update;
  if (UpdatesByBucket()) {
    updater->Schedule(ScheduleStep());
    updater->Prepare();
    updates_by_bucket = true;
    update = [this](size_t bucket) { updater->LaunchBucket(bucket); };
  }
  DataParallel::Reduction reduction(parallel, std::move(update));
  pass.listener = reduction.listener();
  pass.on_loss = [&](float loss) { reduction.TakeLoss(of_iteration(loss)); };
  const float loss = training_net->ForwardBackward(pass);
  return {.own = loss, .mean = static_cast<float>(reduction.Finish(of_iteration(loss)))};
}

void Solver::Impl::ApplyUpdate() {
  const TraceSpan span("update");
  if (std::exchange(updates_by_bucket, false)) {
    updater->FinishBuckets();
    SendReport();
    return TakeReports();
  }
  TakeReports();  // of the iteration before, so nothing that runs is waited for
  std::map<const Blob*, std::vector<double>> before;
  if (LogsValues()) before = ParamValues(*net);
  updater->Step(ScheduleStep());
  SendReport();
  if (training_net->device()->is_host_accessible() || LogsValues()) TakeReports();
  if (LogsValues() && step_state.is_skipped == 0) LogUpdateValues(*net, before);
}

StepScalars Solver::Impl::ScheduleStep() {
  if (param.lr_policy() == "plateau") {
    const int reached = PlateauAt(param, iter, current_step, smoothed_loss.mean(), &plateau);
    if (reached != current_step) {
      LOG_IF(INFO, parallel.is_root())
          << "Plateau Status: Iteration " << iter << ", step = " << reached;
    }
    current_step = reached;
  }
  StepScalars step;
  step.iteration = iter;
  step.rate = LearningRate();
  step.momentum = MomentumAt(param, iter, step.rate);
  step.weight_decay = WeightDecayAt(param, iter);
  step.gradient_factor = 1.0 / param.iter_size();
  std::optional<double> gradient_scale;
  if (decide.scaling.is_on()) gradient_scale = step_state.scale;
  reporter->TakeRate(iter, step.rate, gradient_scale, IsDisplayed());
  return step;
}

void Solver::Impl::TakeReports() {
  while (!reports->is_empty()) {
    const auto [iteration, state] = reports->Take();
    step_state = state;
    if (state.is_skipped != 0) {
      LOG_IF(WARNING, parallel.is_root())
          << "Iteration " << iteration << ": gradients are not finite at gs = " << state.used_scale
          << "; step skipped (" << state.skipped_steps << " so far), now gs = " << state.scale;
      const bool has_updated = iteration - first_iter >= state.skipped_in_a_row;
      CheckSkippedSteps(state, [&] { return DescribeFirstNonFinite(has_updated); });
    } else if (state.clip_factor != 1) {
      LOG_IF(INFO, parallel.is_root())
          << "Gradient clipping: scaling down gradients (L2 norm " << state.gradient_norm << " > "
          << param.clip_gradients() << ") by scale factor " << state.clip_factor;
    }
  }
}

// A run that ends: the others may not repeat their pass. Where layers are split, a rank cannot
// repeat it alone; the first that finds something ends the others' waiting.
std::string Solver::Impl::DescribeFirstNonFinite(bool has_updated) {
  if (!split->are_there()) parallel.LetLayersSum(false);
  return training_net->DescribeFirstNonFinite(
      has_updated ? ": an update was too large; lower base_lr or set clip_gradients"
                  : ": no update has changed it, so the weights that were loaded hold it, or its "
                    "filler gave it");
}

void Solver::Impl::ThrowNotANumber(int iteration) {
  const std::string cause = DescribeFirstNonFinite(iter > first_iter);
  throw Error(StrCat("solver: the loss of iteration ", iteration,
                     " is not a number: ", cause.empty() ? "its cause did not show again" : cause,
                     last_snapshot_iter >= 0
                         ? StrCat(" (the last snapshot is of iteration ", last_snapshot_iter, ")")
                         : ""));
}

double Solver::Impl::LearningRate() {
  if (param.lr_policy() == "multistep") {
    const int reached = MultiStepAt(param, iter, current_step);
    if (reached != current_step) {
      current_step = reached;
      LOG_IF(INFO, parallel.is_root())
          << "MultiStep Status: Iteration " << iter << ", step = " << current_step;
    }
  }
  return LearningRateAt(param, iter, current_step);
}

void Solver::Impl::TestAll() {
  split->GatherWeights();
  for (size_t i = 0; i < test_nets.size() && !stop_requested; ++i) Test(i);
}

void Solver::Impl::Test(size_t index) {
  const TraceSpan span("test");
  const TrainingProgress::Pause pause(*reporter);
  LOG_IF(INFO, parallel.is_root()) << "Iteration " << iter << ", Testing net (#" << index << ")";
  Net& test_net = *test_nets[index];
  // Ranks take turns at the batches that one rank alone would see, so that results do not depend on
  // their number.
  std::vector<std::vector<double>> batches(param.test_iter(static_cast<int>(index)));
  const auto ranks = static_cast<uint64_t>(parallel.ranks());
  for (std::vector<double>& record : batches) {
    const uint64_t batch = tested_batches[index]++;
    if (&record == batches.data() || batch % ranks == 0) PollDuringTest();
    if (stop_requested) {
      LOG_IF(INFO, parallel.is_root()) << "Test interrupted.";
      return;
    }
    if (batch % ranks != static_cast<uint64_t>(parallel.rank())) continue;
    const std::string number = std::to_string(index);
    const Activity testing("test", "computes a batch of test net", number);
    record = TestRecord(TrainingNet(test_net).Forward(batch), test_net);
  }
  parallel.Share(&batches);
  if (parallel.is_root()) ReportTest(index, batches);
}

void Solver::Impl::ReportTest(size_t index, const std::vector<std::vector<double>>& batches) {
  const Net& test_net = *test_nets[index];
  const bool is_detection = param.eval_type() == "detection";
  const size_t outputs = test_net.output_blobs().size();
  TestReport report = {.iteration = iter, .net = static_cast<int>(index)};
  std::vector<DetectionScore> scores(is_detection ? outputs : 0,
                                     DetectionScore(param.ap_version()));
  if (!is_detection) report.outputs.resize(outputs);
  Blob rows;
  for (const std::vector<double>& record : batches) {
    report.loss += record[0];
    auto next = record.begin() + 1;
    for (size_t i = 0; i < outputs; ++i) {
      const std::vector<float> values = TakeValues(&next);
      if (is_detection) {
        scores[i].Add(FillRows(values, *test_net.output_blobs()[i], &rows));
        continue;
      }
      std::vector<float>& sums = report.outputs[i].values;
      sums.resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) sums[k] += values[k];
    }
  }
  report.loss /= static_cast<double>(batches.size());
  for (size_t i = 0; i < outputs; ++i) {
    const std::string& name = test_net.output_names()[i];
    if (is_detection) {
      report.detections.push_back(
          {name, scores[i].MeanAveragePrecision(), scores[i].AveragePrecisions()});
      continue;
    }
    report.outputs[i].name = name;
    report.outputs[i].loss_weight = test_net.loss_weight(name);
    for (float& sum : report.outputs[i].values) sum /= static_cast<float>(batches.size());
  }
  reporter->Report(report);
}

SolverAction::Enum Solver::Impl::Poll() {
  if (watchdog) watchdog->ThrowIfAborted();
  const bool asks = action_function && parallel.leads_process();
  std::array<double, kActions> ranks{};  // that ask for each action
  ranks[asks ? action_function() : SolverAction::NONE] = 1;
  parallel.Sum(ranks);
  // A signal may come to one process of many, or to some of them before others.
  if (ranks[SolverAction::STOP] > 0) return SolverAction::STOP;
  return ranks[SolverAction::SNAPSHOT] > 0 ? SolverAction::SNAPSHOT : SolverAction::NONE;
}

void Solver::Impl::PollDuringTest() {
  const SolverAction::Enum action = Poll();
  if (action == SolverAction::SNAPSHOT) {
    split->GatherAll();
    SnapshotWhileTraining();
  }
  if (action == SolverAction::STOP) stop_requested = true;
}

// Of the last whole iteration, where an error has broken off one.
SolverProgress Solver::Impl::Progress() {
  SolverProgress progress;
  progress.iter = iter;
  progress.current_step = current_step;
  progress.plateau = plateau;
  progress.recent_losses = smoothed_loss.losses();
  progress.solver_type = param.type();
  progress.net_name = net->name();
  progress.seed = seed;
  progress.delivered_records = records_at_iteration.value_or(training_net->delivered_records());
  progress.gradient_scale = updater->ReadState();
  if (decide.larc.is_turbo) progress.larc_cosines = updater->ReadCosines();
  return progress;
}

std::string Solver::Impl::Snapshot() {
  CheckRestored();
  if (!parallel.is_root()) {
    last_snapshot_iter = iter;
    return "";
  }
  const TraceSpan span("snapshot");
  const Activity writing("snapshot", "writes", snapshot_prefix);
  const TrainingProgress::Pause pause(*reporter);
  const bool as_hdf5 = param.snapshot_format() == SolverParameter::HDF5;
  const std::string file = WriteSnapshot(snapshot_prefix, as_hdf5, param.snapshot_diff(), *net,
                                         updater->history(), Progress());
  last_snapshot_iter = iter;
  reporter->Report(SnapshotReport{iter, file});
  return file;
}

void Solver::Impl::SnapshotWhileTraining() {
  try {
    Snapshot();
  } catch (const DeviceFault&) {  // there is no device to go on with
    throw;
  } catch (const Error& error) {
    LOG(ERROR) << "Snapshot at iteration " << iter << " failed, training goes on: " << error.what();
  } catch (const std::bad_alloc&) {
    LOG(ERROR) << "Snapshot at iteration " << iter
               << " failed, training goes on: not enough memory for a copy of the weights";
  }
}

void Solver::Impl::Restore(const std::string& file) {
  const SnapshotReader reader(file);
  const std::string weights = reader.WeightsFile();
  const SolverProgress& progress = reader.progress();
  Require(progress.solver_type.empty() || progress.solver_type == param.type(), file,
          ": was written by a solver of type '", progress.solver_type, "', this one is '",
          param.type(), "'; use the solver file of that run");
  Require(progress.net_name.empty() || progress.net_name == net->name(), file, ": belongs to net '",
          progress.net_name, "', this solver trains '", net->name(), "'");
  reader.CheckHistory(updater->history());
  const size_t params = net->learnable_params().size();
  std::vector<float> cosines = progress.larc_cosines;
  // A run without larc_turbo has saved none: they start from zero.
  if (cosines.empty()) cosines.resize(params);
  Require(cosines.size() == params, file, ": has ", cosines.size(), " LARC cosines, the net ",
          params, " parameters; it was written by another net");
  // After a failure the nets may be without their data, and cannot be asked.
  const bool moves_data =
      is_half_restored ||
      (progress.has_seed &&
       (progress.seed != seed || progress.delivered_records != training_net->delivered_records()));
  is_half_restored = true;
  if (moves_data) {
    if (progress.has_seed) seed = progress.seed;
    training_net->ResumeFrom(seed, progress.delivered_records);
    for (const std::shared_ptr<Net>& test_net : test_nets)
      TrainingNet(*test_net).ResumeFrom(seed, {});
    tested_batches.assign(test_nets.size(), 0);
  }
  if (!weights.empty()) net->CopyTrainedLayersFrom(weights);
  reader.ReadHistory(updater->history());
  iter = first_iter = last_snapshot_iter = progress.iter;
  current_step = progress.current_step;
  plateau = progress.plateau;
  smoothed_loss.Restore(progress.recent_losses);
  continues_window = true;
  TakeReports();
  step_state = {};
  if (decide.scaling.is_on()) step_state = progress.gradient_scale;
  updater->WriteState(step_state);
  updater->WriteCosines(cosines);
  if (parallel.spans_processes()) {
    parallel.Agree(FactsAboutState(iter, *net, updater->history()));
  }
  restored_from = file;
  is_half_restored = is_half_updated = false;
  split->MarkWhole();
}

void Solver::Impl::CheckRestored() const {
  Require(!is_half_restored,
          "solver: restoring a snapshot failed half-way; restore one before training goes on");
  Require(!is_half_updated, "solver: iteration ", iter,
          " failed while weights were being updated; restore a snapshot before training goes on");
  Require(split->are_whole(), "solver: after iteration ", iter,
          " each rank has a part of the layers with parallel: SPLIT_OUTPUT, because training has "
          "failed; restore a snapshot");
}

// Tells the observers that training begins and, however it does, that it ends.
void Solver::Impl::Observed(Solver* self, int stop, const std::function<void()>& train) {
  CheckRestored();
  parallel.UseShareOfThreads();
  if (parallel.leads_process() && (!watchdog || !IsOfThisProcess(watchdog))) {
    watchdog = MakeThreaded<Watchdog>(param, options.give_up);
  }
  reporter->Start({.solver = self,
                   .iteration = iter,
                   .stop = stop,
                   .workers = parallel.ranks(),
                   .seed = seed,
                   .resumed_from = std::exchange(restored_from, "")});
  parallel.LetLayersSum(true);
  try {
    train();
  } catch (const std::exception& error) {
    parallel.LetLayersSum(false);
    // Where the device is lost they fail, too, and the error that ends training is the first.
    const auto try_to = [](const auto& work) {
      try {
        work();
      } catch (const DeviceError&) {
      }
    };
    if (records_at_iteration) try_to([&] { statistics_at_iteration->Restore(); });
    is_half_updated = std::exchange(updates_by_bucket, false) && parallel.has_updated();
    if (is_half_updated) updater->Finish();  // blobs show what is there
    const std::string aborted = watchdog ? watchdog->reason() : "";
    // What a rank has not gathered, it cannot write.
    if (!aborted.empty()) try_to([&] { SnapshotWhileTraining(); });
    watchdog.reset();
    reporter->End({iter, TrainingEnd::kFailed, error.what()});
    if (!aborted.empty() && options.give_up) options.give_up(aborted);
    throw;
  }
  parallel.LetLayersSum(false);
  reporter->End({iter, stop_requested ? TrainingEnd::kStopped : TrainingEnd::kFinished, ""});
}

Solver::Solver(const SolverParameter& param, const SolverOptions& options)
    : impl_(EndingAll(options, [&] {
        return WithSolverPosition(options.file,
                                  [&] { return std::make_unique<Impl>(param, options); });
      })) {}

Solver::~Solver() = default;

void Solver::Solve(const std::string& resume_file) {
  Impl& self = *impl_;
  EndingAll(self.options, [&] {
    WithSolverPosition(self.options.file, [&] { self.CheckSolvable(); });
    const bool is_root = self.parallel.is_root();
    LOG_IF(INFO, is_root) << "Solving " << self.net->name();
    LOG_IF(INFO, is_root) << "Learning Rate Policy: " << self.param.lr_policy();
    const std::string file = self.parallel.OfRoot(resume_file);
    if (!file.empty()) {
      LOG_IF(INFO, is_root) << "Restoring previous solver status from " << file;
      self.Restore(file);
    }
    self.Observed(this, self.param.max_iter(), [&] { self.SolveFromHere(); });
  });
}

// Unless that of this iteration is there, which rank 0 alone knows. Where it has failed, the error
// is the run's this time; no rank ends before it is written.
void Solver::Impl::SnapshotAtEnd() {
  const std::string is_there = "it is there";
  if (parallel.OfRoot(last_snapshot_iter == iter ? is_there : "") == is_there) return;
  AgreeOnWeights();
  Snapshot();
  parallel.OfRoot(is_there);
}

void Solver::Impl::SolveFromHere() {
  LOG_IF(WARNING, parallel.is_root() && iter > 0 && iter >= param.max_iter())
      << "No iteration is left to train: this is iteration " << iter << ", and max_iter is "
      << param.max_iter() << "; raise max_iter to train further";
  Step(std::max(0, param.max_iter() - iter));
  if (param.snapshot_after_train()) SnapshotAtEnd();
  if (stop_requested) {
    LOG_IF(INFO, parallel.is_root()) << "Optimization stopped early.";
    return;
  }
  if (IsDisplayed()) {
    float loss = 0;
    net->Forward(&loss);
    smoothed_loss.Add(static_cast<float>(parallel.Mean(loss)));
    LOG_IF(INFO, parallel.is_root()) << "Iteration " << iter << ", loss = " << smoothed_loss.mean();
  }
  if (param.test_interval() > 0 && iter % param.test_interval() == 0) TestAll();
  LOG_IF(INFO, parallel.is_root()) << "Optimization Done.";
}

void Solver::Step(int iterations) {
  const int64_t stop = std::min<int64_t>(int64_t{impl_->iter} + iterations, INT_MAX);
  EndingAll(impl_->options, [&] {
    impl_->Observed(this, static_cast<int>(stop), [&] { impl_->Step(iterations); });
  });
}
void Solver::Restore(const std::string& state_file) {
  EndingAll(impl_->options, [&] { impl_->Restore(impl_->parallel.OfRoot(state_file)); });
}
std::string Solver::Snapshot() {
  return impl_->Snapshot();
}
void Solver::TestAll() {
  EndingAll(impl_->options, [&] { impl_->TestAll(); });
}
Net& Solver::net() {
  return *impl_->net;
}
const std::shared_ptr<Net>& Solver::shared_net() const {
  return impl_->net;
}
void Solver::ApplyUpdate() {
  if (impl_->parallel.spans_processes() || impl_->split->are_there()) {
    throw Unsupported(
        "solver: ApplyUpdate() uses the gradients of this process alone, but several train "
        "together; use Step()");
  }
  impl_->ApplyUpdate();
}
const std::vector<std::shared_ptr<Net>>& Solver::test_nets() const {
  return impl_->test_nets;
}
int Solver::iter() const {
  return impl_->iter;
}
const SolverParameter& Solver::param() const {
  return impl_->param;
}
const std::string& Solver::type() const {
  return impl_->param.type();
}
double Solver::LearningRate() {
  return impl_->LearningRate();
}
const std::vector<std::shared_ptr<Blob>>& Solver::history() const {
  return impl_->updater->history();
}
float Solver::smoothed_loss() const {
  return impl_->smoothed_loss.mean();
}
void Solver::SetActionFunction(std::function<SolverAction::Enum()> function) {
  impl_->action_function = std::move(function);
}
void Solver::AddCallbacks(Callbacks callbacks) {
  impl_->callbacks.push_back(std::move(callbacks));
}
void Solver::AddObserver(TrainingObserver* observer) {
  if (impl_->parallel.is_root()) impl_->reporter->Add(observer);
}
void Solver::RemoveObserver(TrainingObserver* observer) {
  impl_->reporter->Remove(observer);
}

}  // namespace caffe
