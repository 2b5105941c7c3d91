// Process-wide settings, the log, the timer, and settings for several processes.
#include <glog/logging.h>

#include <algorithm>
#include <chrono>

#include "bindings.hpp"
#include "caffe/decode_limit.hpp"
#include "caffe/plugin.hpp"

namespace caffe::python {
namespace {

void InitLog(int level, bool to_stderr) {
  static bool is_done = false;
  Require(!is_done, "init_log: the log is initialised already; call it once, and first");
  Require(0 <= level && level <= 3, "init_log: level is ", level,
          "; use 0 (INFO), 1 (WARNING), 2 (ERROR) or 3 (FATAL)");
  is_done = true;
  FLAGS_minloglevel = level;
  FLAGS_logtostderr = to_stderr;
  if (!google::IsGoogleLoggingInitialized()) google::InitGoogleLogging("");
  google::InstallFailureSignalHandler();
}

// Wall time between start() and stop().
class Timer {
 public:
  void Start() { start_ = Clock::now(), is_running_ = true; }
  void Stop() { elapsed_ = Elapsed(), is_running_ = false; }
  double Milliseconds() const {
    return std::chrono::duration<double, std::milli>(Elapsed()).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::duration Elapsed() const { return is_running_ ? Clock::now() - start_ : elapsed_; }

  Clock::time_point start_;
  Clock::duration elapsed_{};
  bool is_running_ = false;
};

// Number of processes that train together, and this process's rank; used by scripts only.
struct Processes {
  int count = 1, rank = 0;
  bool are_several = false;
};
Processes processes;

struct Nccl {};

[[noreturn]] void ThrowNoNccl() {
  throw Unsupported(
      "NCCL: this build has no communication between GPUs (caffe.has_nccl() is False); train in "
      "one process");
}

}  // namespace

void BindSettings(py::module_& module) {
  module.attr("__version__") = Version();
  module.def(
      "init_log", [] { InitLog(std::clamp(FLAGS_minloglevel, 0, 3), true); },
      "Initialises the log (glog) and its handler of crashes, with the level of the environment "
      "variable GLOG_minloglevel. Once per process, before the rest; the import does not do it.");
  module.def(
      "init_log", [](int level) { InitLog(level, true); }, py::arg("level"),
      "Messages below `level` (0 INFO, 1 WARNING, 2 ERROR, 3 FATAL) are dropped.");
  module.def("init_log", InitLog, py::arg("level"), py::arg("stderr"),
             "`stderr`: to standard error, not to files.");
  module.def(
      "log", [](const std::string& text) { LOG(INFO) << text; }, py::arg("text"),
      "Writes one line of level INFO to the log.");
  module.def(
      "set_mode_cpu", [] { Caffe::set_mode(Caffe::CPU); }, "Nets built from now on use the CPU.");
  module.def(
      "set_mode_gpu",
      [] {
        DescribeGpu(Caffe::device());
        Caffe::set_mode(Caffe::GPU);
      },
      "Nets built from now on use the GPU. Raises Unsupported where the build has none, "
      "DeviceError "
      "where the machine has none with the number of set_device.");
  module.def(
      "set_device",
      [](int id) {
        Require(id >= 0, "set_device: there is no device ", id, "; count from 0");
        DescribeGpu(id);
        Caffe::SetDevice(id);
      },
      py::arg("id"),
      "The GPU for nets built from now on. Raises Unsupported where the build has none, "
      "DeviceError "
      "where the machine has none with this number.");
  module.def(
      "set_devices",
      [](const std::vector<int>& ids) {
        Require(!ids.empty() && ids.front() >= 0,
                "set_devices: give the numbers of the GPUs, from 0");
        if (ids.size() > 1) {
          throw Unsupported(
              "set_devices: nets in Python use one GPU; train on several with caffe train");
        }
        Caffe::SetDevice(ids.front());
      },
      py::arg("ids"), "The GPUs for nets built from now on: one.");
  module.def(
      "set_random_seed",
      [](int64_t seed) {
        Require(seed >= 0, "set_random_seed: ", seed, " is negative; give 0 or more");
        Caffe::set_random_seed(static_cast<uint64_t>(seed));
      },
      py::arg("seed"),
      "Nets built from now on draw the same random numbers each time: fillers, dropout, order of "
      "data.");
  module.def("set_max_decoded_mb", SetMaxDecodedMb, py::arg("mb"),
             "Most MiB that one image, HDF5 file or message may take when it is decoded, unless "
             "that is at most 16 times the file's size: 1024 until it is set. Raises "
             "InvalidArgument unless it is positive.");
  module.def("max_decoded_mb", MaxDecodedMb, "What set_max_decoded_mb set.");
  module.def(
      "load_plugin",
      [](const py::object& file) {
        const PluginInfo info = LoadPlugin(PathOf(file));
        return info.layer_types;
      },
      py::arg("file"),
      "Loads a shared library with layers for the rest of the process and returns their types. "
      "Raises InvalidArgument for one that is not a plug-in of this version, or whose types are "
      "taken.");
  module.def("layer_type_list", LayerRegistry::LayerTypeList,
             "Names of the layer types, sorted: what a layer's `type` may be.");
  module.def("solver_type_list", SolverTypeList,
             "Names of the solver types, sorted: what a solver's `type` may be.");

  module.def(
      "solver_count", [] { return processes.count; }, "Number of processes that train together.");
  module.def(
      "set_solver_count",
      [](int count) {
        Require(count >= 1, "set_solver_count: ", count, "; it must be at least 1");
        processes.count = count;
      },
      py::arg("count"));
  module.def(
      "solver_rank", [] { return processes.rank; }, "Which of them this one is, from 0.");
  module.def(
      "set_solver_rank",
      [](int rank) {
        Require(rank >= 0, "set_solver_rank: ", rank, "; count from 0");
        processes.rank = rank;
      },
      py::arg("rank"));
  module.def(
      "set_multiprocess", [](bool several) { processes.are_several = several; },
      py::arg("multiprocess"));
  module.def(
      "has_nccl", [] { return false; }, "Whether GPUs can exchange gradients in this build.");

  py::class_<Nccl>(module, "NCCL", "Exchange of gradients between GPUs. Not in this build.")
      .def(py::init(
          [](const py::args&, const py::kwargs&) -> std::unique_ptr<Nccl> { ThrowNoNccl(); }))
      .def_static("new_uid", []() -> py::bytes { ThrowNoNccl(); });

  py::class_<Timer>(module, "Timer", "Wall time between start() and stop().")
      .def(py::init<>())
      .def("start", Method<Timer>(&Timer::Start))
      .def("stop", Method<Timer>(&Timer::Stop))
      .def_property_readonly("ms", Method<Timer>(&Timer::Milliseconds),
                             "Milliseconds measured; up to now while it runs.");
}

}  // namespace caffe::python
