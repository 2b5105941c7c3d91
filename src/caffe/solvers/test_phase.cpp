#include "caffe/solvers/test_phase.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "caffe/core/activity.hpp"
#include "caffe/detection_score.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/solvers/log_net.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_lines.hpp"
#include "caffe/trace.hpp"

namespace caffe {
namespace {

// The record of a test batch: its loss, then for each output the number of its values and the
// values.
std::vector<double> TestRecord(float loss, const Net& net) {
  std::vector<double> record = {loss};
  for (const Blob* blob : net.output_blobs()) {
    record.push_back(static_cast<double>(blob->count()));
    record.insert(record.end(), blob->cpu_data(), blob->cpu_data() + blob->count());
  }
  return record;
}

// Returns the last layer of the net that writes an output.
std::string MakerOf(const Net& net, const std::string& output) {
  std::string maker;
  for (const LayerParameter& layer : net.definition().layer()) {
    if (std::ranges::count(layer.top(), output) > 0) maker = PlaceOf(layer);
  }
  return maker;
}

// Describes the first non-finite number of the last batch, with its layer and blob; empty if all
// are finite.
std::string DescribeOutput(float loss, const Net& net) {
  for (size_t i = 0; i < net.output_blobs().size(); ++i) {
    const Blob& blob = *net.output_blobs()[i];
    const float* const end = blob.cpu_data() + blob.count();
    const float* const found =
        std::find_if(blob.cpu_data(), end, [](float value) { return !std::isfinite(value); });
    if (found == end) continue;
    const std::string& name = net.output_names()[i];
    return StrCat("output '", name, "' of ", MakerOf(net, name), " is ", *found, " at element ",
                  found - blob.cpu_data());
  }
  return std::isfinite(loss) ? "" : StrCat("the loss is ", loss);
}

// True if a pass can be repeated without side effects: all host calls are data layers that repeat
// their batch (DummyData draws by the pass number; HDF5Data advances). Other host calls count, or
// write files.
bool IsRepeatable(const Net& net) {
  const Graph& graph = net.graph();
  return std::ranges::all_of(graph.ScheduledNodes(), [&](const Node* node) {
    if (node->op.As<ops::HostCall>() == nullptr) return true;
    const Layer& layer = *graph.calls[node->layers.front()].layer;
    return layer.type() == "DummyData" ||
           (layer.records_delivered() > 0 && layer.type() != "HDF5Data");
  });
}

// Extracts the values of the next output from a record.
std::vector<float> TakeValues(std::vector<double>::const_iterator* next) {
  const auto count = static_cast<std::ptrdiff_t>(**next);
  const auto begin = *next + 1;
  *next = begin + count;
  return {begin, begin + count};
}

// Restores the rows of a DetectionEvaluate layer to the blob's shape, from any rank.
Blob& FillRows(const std::vector<float>& values, const Blob& like, Blob* rows) {
  const int64_t columns = like.num_axes() > 0 ? like.shape(-1) : 1;
  rows->Reshape(Shape{static_cast<int64_t>(values.size()) / columns, columns});
  std::copy(values.begin(), values.end(), rows->mutable_cpu_data());
  return *rows;
}

}  // namespace

TestPhase::TestPhase(const SolverContext& context, const NetOptions& train)
    : context_(context), seed_(train.seed.value_or(0)) {
  for (const TestNetDefinition& definition :
       TestNetDefinitions(context.param, context.options.lenient)) {
    AddNet(train, definition);
  }
  choice_.emplace(context.param, nets_);
}

void TestPhase::AddNet(const NetOptions& train, const TestNetDefinition& definition) {
  NetOptions options = TestNetOptions(train, definition);
  options.keep_all = context_.options.keep_all;
  TestNet test{.net = std::make_shared<Net>(definition.param, options), .epoch = {}};
  if (definition.is_whole_epoch) {
    try {
      test.epoch = BatchesOfEpoch(*test.net);
    } catch (const InvalidArgument& unknown) {
      const std::string what = StrCat("solver: test_iter is not given, and ", unknown.what());
      if (!definition.is_implied) throw InvalidArgument(what + "; give test_iter");
      // Compatible with files from before test_iter became optional.
      SOLVER_LINE_IF(WARNING, context_.parallel.is_root())
          << what << "; nothing is tested: give test_iter for tests";
      return;
    }
  }
  const int index = static_cast<int>(tests_.size());
  if (context_.parallel.is_root()) {
    const auto log = context_.options.logs_definitions ? LogNet : LogSizeOfNet;
    log(*test.net, SourceOfTestNet(context_.param, index), 0);
  }
  SOLVER_LINE_IF(INFO, context_.parallel.is_root() && test.epoch.has_value())
      << "Test net #" << index << ": each of " << test.epoch->records
      << " records is scored once, in " << test.epoch->count() << " batches of "
      << test.epoch->batch_size << " (test_iter is not given)";
  test.net->ShareTrainedLayersWith(context_.net);
  nets_.push_back(test.net);
  tests_.push_back(std::move(test));
}

std::optional<std::vector<TestReport>> TestPhase::Run(const Moment& moment,
                                                      const std::function<bool()>& stops) {
  if (is_interrupted_) MoveTo(before_);
  if (begun_ != moment.iteration) {
    begun_ = moment.iteration;
    before_ = PositionsOfRoot();
  }
  is_interrupted_ = true;
  std::vector<TestReport> reports;
  for (size_t i = 0; i < tests_.size(); ++i) {
    std::optional<TestReport> report = RunOne(i, moment, stops);
    if (!report) return std::nullopt;
    reports.push_back(std::move(*report));
  }
  is_interrupted_ = false;
  return reports;
}

// An interrupted test, or a caller that ran the net, may have left it in the middle of an epoch.
void TestPhase::BeginEpoch(TestNet* test) const {
  TrainingNet net(*test->net);
  if (test->tested % test->epoch->count() == 0 && net.delivered_records() == test->delivered)
    return;
  net.ResumeFrom(seed_, {});
  test->tested = 0;
}

std::vector<double> TestPhase::RunBatch(const TestNet& test, uint64_t batch, float* loss) const {
  TrainingNet net(*test.net);
  const uint64_t records = test.RecordsOf(batch);
  if (!test.epoch || records == test.epoch->batch_size) {
    *loss = net.Forward(test.start.batches + batch);
  } else {
    WithContext(StrCat("solver: the test's last batch, of ", records, " records (a net that needs ",
                       test.epoch->batch_size, " needs a batch_size that divides ",
                       test.epoch->records, ", or test_iter)"),
                [&] { *loss = net.Forward(test.start.batches + batch); });
  }
  return TestRecord(*loss, *test.net);
}

std::optional<TestReport> TestPhase::RunOne(size_t index, const Moment& moment,
                                            const std::function<bool()>& stops) {
  const TraceSpan span("test");
  const TrainingProgress::Pause pause(context_.reporter);
  const DataParallel& parallel = context_.parallel;
  SOLVER_LINE_IF(INFO, parallel.is_root())
      << "Iteration " << moment.iteration << ", Testing net (#" << index << ")";
  TestNet& test = tests_[index];
  if (test.epoch) BeginEpoch(&test);
  // Ranks alternate on the batches that a single rank would read, so that results do not depend on
  // the number of ranks.
  std::vector<std::vector<double>> batches(
      test.epoch ? test.epoch->count()
                 : static_cast<uint64_t>(context_.param.test_iter(static_cast<int>(index))));
  std::vector<double> weights;
  const auto ranks = static_cast<uint64_t>(parallel.ranks());
  bool is_finite = true;
  for (std::vector<double>& record : batches) {
    const uint64_t batch = test.tested++;
    weights.push_back(static_cast<double>(test.RecordsOf(batch)));
    if ((&record == batches.data() || batch % ranks == 0) && stops()) {
      SOLVER_LINE_IF(INFO, parallel.is_root()) << "Test interrupted.";
      return std::nullopt;
    }
    if (batch % ranks != static_cast<uint64_t>(parallel.rank())) continue;
    const std::string number = std::to_string(index);
    const Activity testing("test", "computes a batch of test net", number);
    float loss = 0;
    record = RunBatch(test, batch, &loss);
    if (!is_finite) continue;  // one line per test is enough
    const std::string what = DescribeOutput(loss, *test.net);
    is_finite = what.empty();
    if (!is_finite)
      TakeNonFinite(index, moment, StrCat("in batch ", &record - batches.data(), " ", what));
  }
  if (test.epoch) test.delivered = TrainingNet(*test.net).delivered_records();
  context_.parallel.Share(&batches);
  TestReport report = Report(index, moment.iteration, batches, weights);
  if (parallel.is_root()) context_.reporter.Report(report);
  return report;
}

void TestPhase::TakeNonFinite(size_t index, const Moment& moment, const std::string& what) {
  const std::string test = StrCat("test net #", index, " at iteration ", moment.iteration);
  const std::string weights = DescribeNonFiniteWeights(context_, moment.has_updated);
  if (!weights.empty()) {
    throw Error(StrCat("solver: ", test, ": ", what, ", because ", weights,
                       AboutLastSnapshot(moment.last_snapshot)));
  }
  Net& net = *nets_[index];
  std::string cause;
  if (IsRepeatable(net)) cause = TrainingNet(net).DescribeFirstNonFinite("");
  SOLVER_LINE(WARNING) << test << ": " << what << (cause.empty() ? "" : ": ") << cause
                       << "; training goes on";
}

TestReport TestPhase::Report(size_t index, int iteration,
                             const std::vector<std::vector<double>>& batches,
                             const std::vector<double>& weights) const {
  const Net& net = *nets_[index];
  const bool is_detection = context_.param.eval_type() == "detection";
  const size_t outputs = net.output_blobs().size();
  TestReport report = {.iteration = iteration, .net = static_cast<int>(index)};
  std::vector<DetectionScore> scores(is_detection ? outputs : 0,
                                     DetectionScore(context_.param.ap_version()));
  if (!is_detection) report.outputs.resize(outputs);
  std::vector<std::vector<double>> sums(outputs);
  Blob rows;
  double all = 0;  // total weight of the batches
  for (size_t batch = 0; batch < batches.size(); ++batch) {
    const std::vector<double>& record = batches[batch];
    const double weight = weights[batch];
    all += weight;
    report.loss += weight * record[0];
    auto next = record.begin() + 1;
    for (size_t i = 0; i < outputs; ++i) {
      const std::vector<float> values = TakeValues(&next);
      if (is_detection) {
        scores[i].Add(FillRows(values, *net.output_blobs()[i], &rows));
        continue;
      }
      sums[i].resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) {
        double& sum = sums[i][k];
        // Batches of equal weight are summed in float, as in Caffe.
        sum = tests_[index].epoch ? sum + weight * values[k] : static_cast<float>(sum) + values[k];
      }
    }
  }
  report.loss /= all;
  for (size_t i = 0; i < outputs; ++i) {
    const std::string& name = net.output_names()[i];
    if (is_detection) {
      report.detections.push_back(
          {name, scores[i].MeanAveragePrecision(), scores[i].AveragePrecisions()});
      continue;
    }
    report.outputs[i].name = name;
    report.outputs[i].loss_weight = net.loss_weight(name);
    for (const double sum : sums[i]) {
      report.outputs[i].values.push_back(tests_[index].epoch
                                             ? static_cast<float>(sum / all)
                                             : static_cast<float>(sum) / static_cast<float>(all));
    }
  }
  return report;
}

void TestPhase::Describe(int iteration, SolverProgress* progress) const {
  choice_->Describe(iteration, progress);
  const std::vector<TestPosition> positions =
      begun_ == iteration || is_interrupted_ ? before_ : Positions();
  const bool are_moved = std::ranges::any_of(
      positions, [](const TestPosition& position) { return position.batches > 0; });
  if (are_moved) progress->test_positions = positions;
}

bool TestPhase::AreAt(const std::vector<TestPosition>& positions) const {
  const std::vector<TestPosition> start(tests_.size());
  return begun_ < 0 && Positions() == (positions.size() == tests_.size() ? positions : start);
}

void TestPhase::ResumeFrom(uint64_t seed, const std::vector<TestPosition>& positions) {
  seed_ = seed;
  begun_ = -1;
  is_interrupted_ = false;
  MoveTo(positions);
}

// The records of an epoch are read from the first.
TestPosition TestPhase::PositionOf(const TestNet& test) const {
  if (test.epoch) return {};
  TestPosition position = {test.start.batches + test.tested,
                           TrainingNet(*test.net).delivered_records()};
  // Each rank takes all to have tested as many batches as it has.
  const auto ranks = static_cast<uint64_t>(context_.parallel.ranks());
  const auto rank = static_cast<uint64_t>(context_.parallel.rank());
  const uint64_t own = (test.tested + ranks - 1 - rank) / ranks;
  if (own == 0) position.delivered_records = test.start.delivered_records;
  if (own == 0 || own * ranks == test.tested) return position;
  for (auto& [layer, records] : position.delivered_records) {
    const auto found = test.start.delivered_records.find(layer);
    const uint64_t start = found == test.start.delivered_records.end() ? 0 : found->second;
    records = start + (records - start) / (own * ranks) * test.tested;
  }
  return position;
}

std::vector<TestPosition> TestPhase::Positions() const {
  std::vector<TestPosition> positions;
  for (const TestNet& test : tests_) positions.push_back(PositionOf(test));
  return positions;
}

// A rank that has not tested yet does not know how many records a batch has.
std::vector<TestPosition> TestPhase::PositionsOfRoot() const {
  SolverState state;
  if (context_.parallel.is_root()) Store(Positions(), &state);
  state.ParseFromString(context_.parallel.FirstText(state.SerializeAsString()));
  return TestPositionsIn(state);
}

void TestPhase::MoveTo(const std::vector<TestPosition>& positions) {
  for (size_t i = 0; i < tests_.size(); ++i) {
    TestNet& test = tests_[i];
    test.start = positions.size() == tests_.size() && !test.epoch ? positions[i] : TestPosition();
    TrainingNet(*test.net).ResumeFrom(seed_, test.start.delivered_records);
    test.tested = 0;
    test.delivered.clear();
  }
}

}  // namespace caffe
