#include "caffe/solvers/test_phase.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "caffe/core/activity.hpp"
#include "caffe/detection_score.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/solvers/log_net.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_lines.hpp"
#include "caffe/solvers/solver_nets.hpp"
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

// The layer of the net that writes an output last.
std::string MakerOf(const Net& net, const std::string& output) {
  std::string maker;
  for (const LayerParameter& layer : net.definition().layer()) {
    if (std::ranges::count(layer.top(), output) > 0) maker = PlaceOf(layer);
  }
  return maker;
}

// The first number of the last batch that is not finite, with its layer and blob; empty if all are.
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

// Whether a pass can be made again without consequences: what calls the host are data layers that
// repeat their batch (DummyData draws by the pass's number; HDF5Data goes on to the next). Others
// count, or write files.
bool IsRepeatable(const Net& net) {
  const Graph& graph = net.graph();
  return std::ranges::all_of(graph.ScheduledNodes(), [&](const Node* node) {
    if (node->op.As<ops::HostCall>() == nullptr) return true;
    const Layer& layer = *graph.calls[node->layers.front()].layer;
    return layer.type() == "DummyData" ||
           (layer.records_delivered() > 0 && layer.type() != "HDF5Data");
  });
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

}  // namespace

TestPhase::TestPhase(const SolverContext& context, const NetOptions& train) : context_(context) {
  const bool lenient = context.options.lenient;
  for (const TestNetDefinition& definition : TestNetDefinitions(context.param, lenient)) {
    NetOptions options = TestNetOptions(train, definition);
    options.keep_all = context.options.keep_all;
    nets_.push_back(std::make_shared<Net>(definition.param, options));
    if (context.parallel.is_root()) {
      const int index = static_cast<int>(nets_.size()) - 1;
      LogNet(*nets_.back(), SourceOfTestNet(context.param, index), 0);
    }
    nets_.back()->ShareTrainedLayersWith(context.net);
  }
  tested_.assign(nets_.size(), 0);
}

bool TestPhase::Run(const Moment& moment, const std::function<bool()>& stops) {
  for (size_t i = 0; i < nets_.size(); ++i) {
    if (!RunOne(i, moment, stops)) return false;
  }
  return true;
}

bool TestPhase::RunOne(size_t index, const Moment& moment, const std::function<bool()>& stops) {
  const TraceSpan span("test");
  const TrainingProgress::Pause pause(context_.reporter);
  const DataParallel& parallel = context_.parallel;
  SOLVER_LINE_IF(INFO, parallel.is_root())
      << "Iteration " << moment.iteration << ", Testing net (#" << index << ")";
  Net& net = *nets_[index];
  // Ranks take turns at the batches that one rank alone would see, so that results do not depend on
  // their number.
  std::vector<std::vector<double>> batches(context_.param.test_iter(static_cast<int>(index)));
  const auto ranks = static_cast<uint64_t>(parallel.ranks());
  bool is_finite = true;
  for (std::vector<double>& record : batches) {
    const uint64_t batch = tested_[index]++;
    if ((&record == batches.data() || batch % ranks == 0) && stops()) {
      SOLVER_LINE_IF(INFO, parallel.is_root()) << "Test interrupted.";
      return false;
    }
    if (batch % ranks != static_cast<uint64_t>(parallel.rank())) continue;
    const std::string number = std::to_string(index);
    const Activity testing("test", "computes a batch of test net", number);
    const float loss = TrainingNet(net).Forward(batch);
    record = TestRecord(loss, net);
    if (!is_finite) continue;  // one line for each test is enough
    const std::string what = DescribeOutput(loss, net);
    is_finite = what.empty();
    if (!is_finite)
      TakeNonFinite(index, moment, StrCat("in batch ", &record - batches.data(), " ", what));
  }
  context_.parallel.Share(&batches);
  if (parallel.is_root()) Report(index, moment.iteration, batches);
  return true;
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

void TestPhase::Report(size_t index, int iteration,
                       const std::vector<std::vector<double>>& batches) {
  const Net& net = *nets_[index];
  const bool is_detection = context_.param.eval_type() == "detection";
  const size_t outputs = net.output_blobs().size();
  TestReport report = {.iteration = iteration, .net = static_cast<int>(index)};
  std::vector<DetectionScore> scores(is_detection ? outputs : 0,
                                     DetectionScore(context_.param.ap_version()));
  if (!is_detection) report.outputs.resize(outputs);
  Blob rows;
  for (const std::vector<double>& record : batches) {
    report.loss += record[0];
    auto next = record.begin() + 1;
    for (size_t i = 0; i < outputs; ++i) {
      const std::vector<float> values = TakeValues(&next);
      if (is_detection) {
        scores[i].Add(FillRows(values, *net.output_blobs()[i], &rows));
        continue;
      }
      std::vector<float>& sums = report.outputs[i].values;
      sums.resize(values.size());
      for (size_t k = 0; k < values.size(); ++k) sums[k] += values[k];
    }
  }
  report.loss /= static_cast<double>(batches.size());
  for (size_t i = 0; i < outputs; ++i) {
    const std::string& name = net.output_names()[i];
    if (is_detection) {
      report.detections.push_back(
          {name, scores[i].MeanAveragePrecision(), scores[i].AveragePrecisions()});
      continue;
    }
    report.outputs[i].name = name;
    report.outputs[i].loss_weight = net.loss_weight(name);
    for (float& sum : report.outputs[i].values) sum /= static_cast<float>(batches.size());
  }
  context_.reporter.Report(report);
}

void TestPhase::ResumeFrom(uint64_t seed) {
  for (const std::shared_ptr<Net>& net : nets_) TrainingNet(*net).ResumeFrom(seed, {});
  tested_.assign(nets_.size(), 0);
}

}  // namespace caffe
