#include "caffe/run_folder.hpp"

#include <glog/logging.h>
#include <google/protobuf/text_format.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/model_info.hpp"
#include "caffe/net/training_net.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/runs/append_file.hpp"
#include "caffe/runs/event_file.hpp"
#include "caffe/runs/log_file.hpp"
#include "caffe/runs/metrics.hpp"
#include "caffe/runs/run_file.hpp"
#include "caffe/solver.hpp"
#include "caffe/solver_factory.hpp"

namespace caffe {
namespace {

using runs::Metrics;

// Iterations between records if the solver displays nothing.
constexpr int kUsualInterval = 100;

std::string Made(const std::string& folder) {
  MakeFolders(folder);
  return folder;
}

// True if a run writes a file of that name, such as "plan.json" or "solver.2.prototxt".
bool IsOfRun(const std::string& name) {
  const bool is_definition = name.starts_with("solver.") || name.starts_with("train_net.") ||
                             name.starts_with("test_net_");
  return (is_definition && name.ends_with(".prototxt")) || name == "run.json" ||
         name == "plan.txt" || name == "plan.json" || name == "trace.json";
}

}  // namespace

class RunFolder::Impl {
 public:
  Impl(const std::string& path, const Options& options)
      : options_(options),
        path_(Made(path)),
        run_(path, options.resumes),
        metrics_(path + "/metrics.jsonl"),
        log_(path + "/log.txt") {
    metrics_.DropTornLine();
    RemoveAbandonedFiles(path, IsOfRun);
  }

  ~Impl() {
    if (has_started_) Try([&] { WriteTrace(); });
  }

  Trace* trace() { return &trace_; }

  void Start(const TrainingStart& start) {
    has_started_ = true;
    solver_ = start.solver;
    Require(options_.histograms == 0 || TrainingNet(solver_->net()).SplitParams().empty(),
            "--histograms shows whole parameters while ranks train, but a layer has parallel: "
            "SPLIT_OUTPUT, of which each rank has a part; leave one of them out");
    has_several_tests_ = solver_->test_nets().size() > 1;
    speed_ = {};
    outputs_.clear();
    Try([&] { run_.Start(start); });
    Try([&] { WriteDefinitions(); });
    Try([&] { WritePlan(); });
    const Metrics metrics = runs::MetricsOf(start);
    Record(metrics);
    Try([&] {
      if (!events_) events_.emplace(path_);
      if (run_.sessions() > 1 || start.iteration > 0)
        events_->Append(runs::StartEvent(metrics.time(), start.iteration));
      events_->Append(runs::GraphEvent(metrics.time(), solver_->net().definition()));
    });
  }

  void Iteration(const IterationReport& report) {
    speed_.Add(report.speed);
    const bool is_recorded = solver_->param().display() > 0
                                 ? report.is_displayed
                                 : report.iteration % kUsualInterval == 0;
    if (is_recorded) {
      Curve(runs::MetricsOf(report, speed_, outputs_));
      speed_ = {};
      outputs_.clear();
    }
    if (options_.histograms > 0 && report.iteration % options_.histograms == 0) {
      WriteHistograms(report.iteration);
    }
  }

  void Display(const DisplayReport& report) { outputs_ = report.outputs; }

  // For events with both a record and points on curves.
  void Curve(const Metrics& metrics) {
    Record(metrics);
    Append(runs::ScalarEvent(metrics, has_several_tests_));
  }

  void Record(const Metrics& metrics) {
    Try([&] { metrics_.Append(runs::ToJson(metrics, /*on_one_line=*/true) + "\n"); });
  }

  // Writes the error of a run to its log, once.
  void Fail(const std::string& error) {
    if (error != told_) log_.Fail(error);
    told_ = error;
  }

  void End(const TrainingEnd& end) {
    if (!end.error.empty()) Fail(end.error);
    Record(runs::MetricsOf(end));
    Try([&] { run_.End(end); });
    solver_ = nullptr;
  }

 private:
  // Failing to write a report must not end training.
  void Try(const std::function<void()>& write) {
    try {
      write();
    } catch (const std::exception& error) {
      if (!has_warned_) {
        LOG(WARNING) << error.what() << "; training goes on, but " << path_
                     << " will not have all of it";
      }
      has_warned_ = true;
    }
  }

  void Append(const runs::Event& event) {
    Try([&] {
      if (events_) events_->Append(event);
    });
  }

  // A definition that a resumed run does not change keeps its file; a changed one gets a numbered
  // file.
  void WriteText(const std::string& stem, const google::protobuf::Message& message) {
    const std::string first = path_ + "/" + stem + ".prototxt";
    std::string text;
    CAFFE_ASSERT(google::protobuf::TextFormat::PrintToString(message, &text));
    if (run_.sessions() <= 1 || !std::filesystem::exists(first)) {
      return WriteFileAtomically(first, text);
    }
    if (ReadFile(first) == text) return;
    WriteFileAtomically(StrCat(path_, "/", stem, ".", run_.sessions(), ".prototxt"), text);
  }

  void WriteDefinitions() {
    WriteText("solver", solver_->param());
    WriteNet("train_net", solver_->net());
    for (size_t i = 0; i < solver_->test_nets().size(); ++i) {
      WriteNet(StrCat("test_net_", i), *solver_->test_nets()[i]);
    }
  }

  void WriteNet(const std::string& stem, const Net& net) {
    NetParameter definition = WithoutMeanImage(net.definition());
    for (LayerParameter& layer : *definition.mutable_layer()) layer.clear_blobs();
    WriteText(stem, definition);
  }

  void WritePlan() {
    const int states = SolverStatesPerParameter(solver_->param());
    const PlanReport report = {MemoryOfPlan(solver_->net(), states)};
    WriteFileAtomically(path_ + "/plan.txt", FormatPlan(solver_->net(), report));
    WriteFileAtomically(path_ + "/plan.json", FormatPlanJson(solver_->net(), report));
  }

  void WriteHistograms(int iteration) {
    runs::Event event;
    event.set_wall_time(runs::SecondsNow());
    event.set_step(iteration);
    for (const Net::LearnableParam& param : solver_->net().learnable_params()) {
      *event.mutable_summary()->add_value() = runs::HistogramOf(
          "parameters/" + param.name, param.blob->cpu_data(), param.blob->count());
    }
    Append(event);
  }

  void WriteTrace() {
    std::ostringstream json;
    trace_.WriteJson(json);
    WriteFileAtomically(path_ + "/trace.json", json.str());
  }

  const Options options_;
  const std::string path_;
  runs::RunFile run_;
  runs::AppendFile metrics_;
  runs::LogFile log_;
  std::string told_;  // the error in the log
  std::optional<runs::EventFile> events_;
  Trace trace_;
  Solver* solver_ = nullptr;  // only during training
  bool has_started_ = false, has_several_tests_ = false, has_warned_ = false;
  // Since the last record.
  TrainingSpeed speed_;
  std::vector<OutputReport> outputs_;
};

RunFolder::RunFolder(const std::string& path, const Options& options)
    : impl_(std::make_unique<Impl>(path, options)) {}
RunFolder::~RunFolder() = default;

Trace* RunFolder::trace() {
  return impl_->trace();
}
void RunFolder::Fail(const std::string& error) {
  impl_->Fail(error);
}
void RunFolder::OnStart(const TrainingStart& start) {
  impl_->Start(start);
}
void RunFolder::OnDisplay(const DisplayReport& report) {
  impl_->Display(report);
}
void RunFolder::OnIteration(const IterationReport& report) {
  impl_->Iteration(report);
}
void RunFolder::OnTest(const TestReport& report) {
  impl_->Curve(runs::MetricsOf(report));
}
void RunFolder::OnSnapshot(const SnapshotReport& report) {
  impl_->Record(runs::MetricsOf(report));
}
void RunFolder::OnEnd(const TrainingEnd& end) {
  impl_->End(end);
}

}  // namespace caffe
