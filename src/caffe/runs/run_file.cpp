#include "caffe/runs/run_file.hpp"

#include <google/protobuf/util/json_util.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/paths.hpp"
#include "caffe/device/device.hpp"
#include "caffe/error.hpp"
#include "caffe/graph/graph.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/plan_report.hpp"
#include "caffe/runs/host_name.hpp"
#include "caffe/runs/metrics.hpp"
#include "caffe/solver.hpp"

namespace caffe::runs {
namespace {

std::string TimeNow() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Quotes a word as for a shell.
std::string Quoted(const std::string& word) {
  const char* const plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string CommandLine() {
  std::string line, word;
  std::istringstream words(ReadFile("/proc/self/cmdline"));
  while (std::getline(words, word, '\0')) line += (line.empty() ? "" : " ") + Quoted(word);
  return line;
}

std::string Compiler() {
#ifdef __clang__
  return __VERSION__;
#else
  return "GCC " __VERSION__;
#endif
}

Run ReadRun(const std::string& path) {
  Run run;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(ReadFile(path), &run, options);
  Require(status.ok(), path, ": is not the description of a run: ", status.ToString(),
          "; give the run another name");
  return run;
}

// True if training in the folder has written a snapshot to resume from.
bool HasSnapshot(const std::string& folder) {
  RequireNoPipe(folder + "/metrics.jsonl");
  std::ifstream lines(folder + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    Metrics metrics;
    const bool is_whole = google::protobuf::util::JsonStringToMessage(line, &metrics).ok();
    if (is_whole && metrics.event() == "snapshot") return true;
  }
  return false;
}

}  // namespace

RunFile::RunFile(const std::string& folder, bool resumes) : path_(folder + "/run.json") {
  if (IsMissing(path_)) return;
  run_ = ReadRun(path_);
  if (run_.sessions().empty() || resumes) return;
  const std::string holds = StrCat(folder, ": holds the run of ", run_.sessions(0).start());
  Require(!HasSnapshot(folder), holds,
          " already; resume it from one of its snapshots, or give this one another name");
  Require(!run_.sessions().rbegin()->end().empty(), holds,
          ", which still goes on or was killed, and has no snapshot; give this one another name, "
          "or delete the folder");
}

void RunFile::Start(const TrainingStart& start) {
  Session& session = *run_.add_sessions();
  session.set_start(TimeNow());
  session.set_start_iteration(start.iteration);
  session.set_stop_iteration(start.stop);
  session.set_resumed_from(start.resumed_from);
  session.set_command(CommandLine());
  session.set_folder(std::filesystem::current_path().string());
  session.set_run_dir(std::filesystem::weakly_canonical(path_).parent_path().string());
  session.set_host(HostName());
  session.set_process(getpid());
  const Net& net = start.solver->net();
  session.set_device(net.graph().options.device->description());
  session.set_workers(start.workers);
  session.set_seed(start.seed);
  session.set_cortado(Version());
  session.set_compiler(Compiler());
  session.set_net(net.name());
  session.set_solver_type(start.solver->type());
  session.set_parameters(MemoryOfPlan(net).parameter_count);
  Write();
}

void RunFile::End(const TrainingEnd& end) {
  Session& session = *run_.mutable_sessions()->rbegin();
  session.set_end(TimeNow());
  session.set_end_iteration(end.iteration);
  session.set_reason(NameOf(end.reason));
  session.set_error(end.error);
  Write();
}

void RunFile::Write() const {
  WriteFileAtomically(path_, ToJson(run_, /*on_one_line=*/false));
}

}  // namespace caffe::runs
