#include "caffe/run_folder.hpp"

#include <fcntl.h>
#include <glog/logging.h>
#include <gmock/gmock.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/runs/append_file.hpp"
#include "caffe/runs/event_file.hpp"
#include "caffe/runs/metrics.hpp"
#include "caffe/solver_group.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/temporary_folder.hpp"

namespace caffe {
namespace {

using runs::AppendFile;
using runs::Metrics;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using testing::ErrorText;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kSolver[] = R"(
  solver_mode: CPU random_seed: 7 base_lr: 0.01 lr_policy: 'fixed' max_iter: 4 display: 2
  snapshot_after_train: false
  net_param {
    name: "line"
    layer { name: "x" type: "DummyData" top: "x" top: "t"
      dummy_data_param { shape { dim: 4 dim: 2 } shape { dim: 4 dim: 1 }
        data_filler { type: "gaussian" } data_filler { type: "constant" value: 3 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
      inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "t" top: "loss" }
  }
)";

class RunFolderTest : public ::testing::Test {
 protected:
  static SolverParameter Parse(const std::string& more = "") {
    SolverParameter param, changes;
    ParseTextProto(kSolver, "test", &param);
    ParseTextProto(more, "test", &changes);
    param.MergeFrom(changes);
    return param;
  }
  void Train(const RunFolder::Options& options = {}, const std::string& more = "",
             int workers = 1) {
    RunFolder run(path(), options);
    SolverGroup group(Parse(more), {.trace = run.trace()}, workers);
    group.solver(0).AddObserver(&run);
    group.Solve();
  }
  std::string path() const { return folder_.path("runs/a"); }
  std::string Read(const std::string& name) const { return ReadFile(path() + "/" + name); }
  std::vector<Metrics> Lines() const {
    std::vector<Metrics> lines;
    std::istringstream text(Read("metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(line, &lines.emplace_back()).ok())
          << line;
    }
    return lines;
  }
  std::vector<std::string> Events() const {
    std::vector<std::string> events;
    for (const Metrics& line : Lines())
      events.push_back(StrCat(line.event(), " ", line.iteration()));
    return events;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(RunFolderTest, HoldsWhatARunLeaves) {
  Train({}, "test_iter: 1 test_interval: 4");
  EXPECT_THAT(Events(), ElementsAre("start 0", "test 0", "train 0", "train 2", "test 4", "end 4"));
  const Metrics train = Lines()[3];
  EXPECT_GT(train.loss(), 0);
  EXPECT_EQ(train.learning_rate(), 0.01f);
  EXPECT_GT(train.images_per_second(), 0);
  EXPECT_EQ(train.outputs().at("loss"), train.loss());
  EXPECT_EQ(Lines().back().reason(), "finished");
  SolverParameter solver;
  ReadTextProto(path() + "/solver.prototxt", &solver);
  EXPECT_EQ(solver.random_seed(), 7);
  NetParameter net;
  ReadTextProto(path() + "/train_net.prototxt", &net);
  EXPECT_EQ(net.layer_size(), 3);
  EXPECT_THAT(Read("test_net_0.prototxt"), HasSubstr("phase: TEST"));
  EXPECT_THAT(Read("plan.txt"), HasSubstr("Peak memory"));
  EXPECT_THAT(Read("plan.json"), HasSubstr("\"steps\""));
  EXPECT_THAT(Read("trace.json"), HasSubstr("\"update\""));
  EXPECT_THAT(Read("log.txt"),
              AllOf(HasSubstr("Iteration 2, lr = 0.01"), HasSubstr("] Optimization Done.\n")));
  EXPECT_THAT(Read("run.json"),
              AllOf(HasSubstr("\"device\": \""), HasSubstr("oneDNN"), HasSubstr("\"seed\": \"7\""),
                    HasSubstr("\"reason\": \"finished\""), HasSubstr("\"end_iteration\": 4"),
                    HasSubstr("runs_test")));
}

TEST_F(RunFolderTest, RecordsEveryHundredthIterationWithoutDisplay) {
  Train({}, "display: 0 max_iter: 201");
  EXPECT_THAT(Events(), ElementsAre("start 0", "train 0", "train 100", "train 200", "end 201"));
}

TEST_F(RunFolderTest, IsOfAllWorkers) {
  Train({}, "", /*workers=*/2);
  EXPECT_EQ(Events().size(), 4u);
  EXPECT_THAT(Read("run.json"), HasSubstr("\"workers\": 2"));
  EXPECT_THAT(Read("trace.json"), HasSubstr("rank 1"));
}

TEST_F(RunFolderTest, RefusesAFolderWithAnotherRun) {
  const std::string snapshots = "snapshot_after_train: true snapshot_prefix: '";
  Train({}, snapshots + folder_.path("s") + "'");
  EXPECT_THAT(
      ErrorText<InvalidArgument>([&] { RunFolder{path()}; }),
      AllOf(StartsWith(path() + ": holds the run of 2"),
            HasSubstr("resume it from one of its snapshots, or give this one another name")));
  // A file, and a folder that cannot be made.
  EXPECT_THAT(ErrorText<IoError>([&] { RunFolder(path() + "/run.json/b"); }),
              HasSubstr("cannot make the folder: Not a directory"));
  std::ofstream(folder_.path("run.json")) << "[1]";
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { RunFolder{folder_.path("")}; }),
              HasSubstr("is not the description of a run"));
  RunFolder other(folder_.path("other"));
  EXPECT_THAT(ErrorText<IoError>([&] { RunFolder{folder_.path("other")}; }),
              HasSubstr("another process writes to it"));
}

TEST_F(RunFolderTest, ContinuesAResumedRun) {
  std::string state;
  {
    RunFolder run(path());
    Solver solver(Parse("snapshot_prefix: '" + folder_.path("s") + "'"));
    solver.AddObserver(&run);
    solver.Step(2);
    state = solver.Snapshot();
  }
  // The machine failed while it wrote this.
  std::ofstream(path() + "/metrics.jsonl", std::ios::app) << R"({"event": "tr)";
  std::ofstream(path() + "/log.txt", std::ios::app) << "I1128 22:0";
  LOG(INFO) << "of no run";
  {
    RunFolder run(path(), {.resumes = true});
    Solver solver(Parse("base_lr: 0.02"));
    solver.AddObserver(&run);
    solver.Solve(state);
  }
  EXPECT_THAT(Events(), ElementsAre("start 0", "train 0", "end 2", "snapshot 2", "start 2",
                                    "train 2", "end 4"));
  EXPECT_EQ(Lines()[4].resumed_from(), state);
  EXPECT_THAT(Read("run.json"), HasSubstr("\"resumed_from\": \"" + state));
  EXPECT_THAT(Read("log.txt"),
              AllOf(HasSubstr("Iteration 0, lr = 0.01"), HasSubstr("Iteration 2, lr = 0.02"),
                    Not(HasSubstr("of no run")), Not(HasSubstr("22:0I"))));
  // The changed definition has its own file.
  EXPECT_THAT(Read("solver.prototxt"), HasSubstr("base_lr: 0.01"));
  EXPECT_THAT(Read("solver.2.prototxt"), HasSubstr("base_lr: 0.02"));
  EXPECT_FALSE(std::filesystem::exists(path() + "/train_net.2.prototxt"));
}

TEST_F(RunFolderTest, BeginsAgainAfterARunWithoutASnapshot) {
  EXPECT_THROW(Train({}, "base_lr: 1e30 max_iter: 1000"), Error);
  Train();
  const std::vector<std::string> events = Events();
  EXPECT_EQ(std::count(events.begin(), events.end(), "start 0"), 2);
  EXPECT_EQ(Lines().back().reason(), "finished");
  EXPECT_THAT(Read("solver.2.prototxt"), HasSubstr("base_lr: 0.01"));
  // The run was killed, so the fields about its end are missing.
  std::string run = Read("run.json");
  for (size_t at; (at = run.find("\"end\":")) != std::string::npos;) run.erase(at, 31);
  std::ofstream(path() + "/run.json") << run;
  EXPECT_THAT(ErrorText<InvalidArgument>([&] { RunFolder{path()}; }),
              HasSubstr("still goes on or was killed, and has no snapshot; give this one another"));
}

TEST_F(RunFolderTest, TrainsOnWhenTheDiskIsFull) {
  std::filesystem::create_directories(path());
  std::filesystem::create_symlink("/dev/full", path() + "/metrics.jsonl");
  ::testing::internal::CaptureStderr();
  Train();
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string warning =
      "metrics.jsonl: cannot write: No space left on device; training goes on";
  EXPECT_THAT(log, HasSubstr(warning));
  EXPECT_THAT(log.substr(log.find(warning) + 1), Not(HasSubstr(warning)));
  EXPECT_THAT(log, HasSubstr("Optimization Done."));
  EXPECT_THAT(Read("run.json"), HasSubstr("\"reason\": \"finished\""));
}

// A lock on a device would be one for all runs.
TEST_F(RunFolderTest, SharesDevicesWithOtherRuns) {
  std::filesystem::create_directories(path());
  std::filesystem::create_symlink("/dev/full", path() + "/metrics.jsonl");
  const int other = open("/dev/full", O_RDWR | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_NO_THROW(Train());
  close(other);
}

TEST_F(RunFolderTest, TrainsOnWithoutALog) {
  std::filesystem::create_directories(path());
  std::filesystem::create_symlink("/dev/full", path() + "/log.txt");
  Train();
  EXPECT_EQ(Lines().back().reason(), "finished");
}

TEST_F(RunFolderTest, LogsErrorsOnce) {
  EXPECT_THROW(Train({}, "base_lr: 1e30 max_iter: 1000"), Error);
  const std::string log = Read("log.txt");
  const size_t error = log.find("is not a number");
  ASSERT_NE(error, std::string::npos) << log;
  EXPECT_EQ(log.find("is not a number", error + 1), std::string::npos) << log;
  RunFolder run(folder_.path("runs/b"));
  run.Fail("no such net");
  EXPECT_THAT(
      ReadFile(folder_.path("runs/b/log.txt")),
      ::testing::MatchesRegex("E[0-9]+ [0-9:.]{15} +[0-9]+ log_file.hpp:[0-9]+\\] no such net\n"));
}

TEST_F(RunFolderTest, TellsOfAFailure) {
  EXPECT_THROW(Train({}, "base_lr: 1e30 max_iter: 1000"), Error);
  EXPECT_EQ(Lines().back().reason(), "failed");
  EXPECT_THAT(Lines().back().error(), HasSubstr("is not a number"));
}

TEST_F(RunFolderTest, TellsThatTrainingWasStoppedEarly) {
  Train({}, StrCat("test_iter: 1 test_interval: 1 metric: 'loss' early_stopping: 1 "
                   "early_stopping_delta: 1e6 snapshot_prefix: '",
                   folder_.path("run"), "'"));
  EXPECT_EQ(Lines().back().reason(), "early stopping");
  EXPECT_EQ(Lines().back().iteration(), 1);
  EXPECT_THAT(Read("run.json"), HasSubstr("\"reason\": \"early stopping\""));
}

TEST_F(RunFolderTest, HasWhatWasMeasuredOfSteps) {
  Train({}, "larc: true display: 2");
  const std::vector<Metrics> lines = Lines();
  for (const Metrics& line : lines) {
    const bool is_train = line.event() == "train";
    EXPECT_EQ(line.has_gradient_norm(), is_train);
    EXPECT_EQ(line.has_larc_median(), is_train);
    EXPECT_FALSE(line.has_skipped_steps());
  }
  IterationReport report;
  report.step = {.gradient_norm = 2.5, .skipped_steps = 3, .larc = LarcReport{0.5, 1, 4}};
  const runs::Event event = runs::ScalarEvent(runs::MetricsOf(report, {}, {}), false);
  std::map<std::string, float> curves;
  for (const auto& value : event.summary().value()) curves[value.tag()] = value.simple_value();
  EXPECT_EQ(curves.at("train/gradient_norm"), 2.5f);
  EXPECT_EQ(curves.at("train/skipped_steps"), 3);
  EXPECT_EQ(curves.at("train/larc_smallest"), 0.5f);
  EXPECT_EQ(curves.at("train/larc_median"), 1);
  EXPECT_EQ(curves.at("train/larc_largest"), 4);
  const runs::Event plain = runs::ScalarEvent(runs::MetricsOf(IterationReport{}, {}, {}), false);
  for (const auto& value : plain.summary().value())
    EXPECT_THAT(value.tag(),
                Not(AnyOf("train/gradient_norm", "train/skipped_steps", "train/larc_median")));
}

TEST_F(RunFolderTest, WritesTensorBoardsRecords) {
  Train({.histograms = 2});
  std::string bytes;
  for (const auto& entry : std::filesystem::directory_iterator(path())) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      bytes = ReadFile(entry.path().string());
    }
  }
  // The 24 bytes of a first event, as every TensorFlow program writes them.
  EXPECT_THAT(bytes, StartsWith(std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09", 13)));
  std::vector<runs::Event> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    ASSERT_LE(at + 16, bytes.size());
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    ASSERT_LE(at + 16 + length, bytes.size());
    ASSERT_TRUE(events.emplace_back().ParseFromString(bytes.substr(at + 12, length)));
    at += 16 + length;
  }
  EXPECT_EQ(events.at(0).file_version(), "brain.Event:2");
  runs::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(events.at(1).graph_def()));
  EXPECT_EQ(graph.node(2).name(), "loss");
  EXPECT_THAT(graph.node(2).input(), ElementsAre("ip", "x"));
  EXPECT_EQ(events.at(2).summary().value(0).tag(), "train/loss");
  EXPECT_EQ(events.at(3).summary().value(0).tag(), "parameters/ip.0");
  EXPECT_EQ(events.at(3).summary().value(0).histo().num(), 2);
  EXPECT_EQ(events.back().step(), 2);
}

// Readers refuse a record with a text that is not UTF-8.
TEST(EventFileTest, RecordsAreUtf8) {
  NetParameter net;
  net.add_layer()->set_name("d\xe9");
  runs::GraphDef graph;
  ASSERT_TRUE(graph.ParseFromString(runs::GraphEvent(0, net).graph_def()));
  EXPECT_EQ(graph.node(0).name(), "d\\xe9");
  const testing::TemporaryFolder folder;
  runs::EventFile file(folder.path(""));
  runs::Event event;
  event.mutable_summary()->add_value()->set_tag("train/d\xe9");
  file.Append(event);
  const auto written = *std::filesystem::directory_iterator(folder.path(""));
  EXPECT_THAT(ReadFile(written.path().string()), HasSubstr("train/d\\xe9"));
  Metrics metrics;
  (*metrics.mutable_outputs())["d\xe9"] = 1;
  EXPECT_EQ(runs::ToJson(metrics, /*on_one_line=*/true), R"({"outputs":{"d\\xe9":1}})");
}

TEST_F(RunFolderTest, HistogramsHaveAllFiniteValues) {
  const float values[] = {0, 1, 1, 4, NAN, INFINITY};
  const runs::Histogram histogram = runs::HistogramOf("x", values, 6).histo();
  EXPECT_EQ(histogram.num(), 4);
  EXPECT_EQ(histogram.sum_squares(), 18);
  EXPECT_EQ(histogram.bucket(0), 1);
  EXPECT_EQ(histogram.bucket(16), 2);
  EXPECT_EQ(*histogram.bucket().rbegin(), 1);
  EXPECT_EQ(*histogram.bucket_limit().rbegin(), 4);
  const float equal[] = {1000, 1000};
  const runs::Histogram narrow = runs::HistogramOf("x", equal, 2).histo();
  EXPECT_EQ(narrow.bucket(0), 2);
  EXPECT_GT(narrow.bucket_limit(0), 1000);
}

TEST_F(RunFolderTest, NumbersThatAreNotFiniteAreStrings) {
  const Metrics metrics = runs::MetricsOf(IterationReport{.loss = NAN}, {}, {});
  EXPECT_THAT(runs::ToJson(metrics, true),
              AllOf(HasSubstr("\"loss\":\"NaN\""), Not(HasSubstr("\n"))));
}

TEST_F(RunFolderTest, OutputsWithSeveralValuesAreNumbered) {
  const Metrics metrics =
      runs::MetricsOf(TestReport{.outputs = {{.name = "each", .values = {1, 2}}}});
  EXPECT_EQ(metrics.outputs().at("each[1]"), 2);
}

TEST_F(RunFolderTest, OutputsWithManyValuesAreRecordedByTheirRange) {
  std::vector<float> many(1000, 1);
  many[7] = -3;
  many[9] = 5;
  const Metrics metrics = runs::MetricsOf(TestReport{.outputs = {{.name = "map", .values = many}}});
  EXPECT_EQ(metrics.outputs().size(), 3u);
  EXPECT_EQ(metrics.outputs().at("map[smallest]"), -3);
  EXPECT_EQ(metrics.outputs().at("map[largest]"), 5);
  EXPECT_FLOAT_EQ(metrics.outputs().at("map[mean]"), 1);
  many[500] = NAN;
  const Metrics unknown = runs::MetricsOf(TestReport{.outputs = {{.name = "map", .values = many}}});
  for (const auto& [name, value] : unknown.outputs()) EXPECT_TRUE(std::isnan(value)) << name;
}

}  // namespace
}  // namespace caffe
