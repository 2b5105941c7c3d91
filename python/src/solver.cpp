// Bindings of Solver.
#include "caffe/solver.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <thread>

#include "bindings.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/live_line.hpp"
#include "caffe/ranks.hpp"
#include "caffe/solver_factory.hpp"
#include "definitions.hpp"

namespace caffe::python {
namespace {

// Remembers the training thread, and rejects calls from other threads and from its own callbacks.
// Accessed only with the interpreter's lock.
class OwnedSolver final : public Solver {
 public:
  OwnedSolver(const SolverParameter& param, const SolverOptions& options, int rank)
      : Solver(param, options), rank_(rank), is_one_of_many_(options.communicator != nullptr) {}

  // The rank among several processes; see caffe/ranks.hpp.
  int rank() const { return rank_; }
  // Throws IoError if the file cannot be read. With several processes, the solver checks the file
  // that rank 0 names, and tells all of them if it is missing.
  void CheckState(const std::string& file) const {
    if (!is_one_of_many_) CheckReadable(file);
  }

  class Run {
   public:
    explicit Run(OwnedSolver& solver, const char* what = "train") : solver_(solver) {
      solver.CheckIdle(what);
      solver.runner_ = std::this_thread::get_id();
    }
    ~Run() { solver_.runner_ = std::thread::id(); }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

   private:
    OwnedSolver& solver_;
  };

  void CheckIdle(const char* what) const {
    Require(runner_ == std::thread::id(), "solver: cannot ", what, " while it is at work",
            runner_ == std::this_thread::get_id()
                ? ": this was called by its own callback"
                : " in another thread; wait for that one to finish");
  }
  // Runs `fn` without the interpreter's lock, excluding other calls except for training callbacks.
  template <typename Fn>
  auto Alone(const char* what, const Fn& fn) {
    std::optional<Run> run;
    if (runner_ != std::this_thread::get_id()) run.emplace(*this, what);
    const GilReleased release;
    return fn();
  }

 private:
  const int rank_;
  const bool is_one_of_many_;
  std::thread::id runner_;
};

// The communicator of this process if a launcher has started several; all solvers that live at the
// same time share it.
std::shared_ptr<Communicator> CommunicatorOfProcess(const RankOptions& ranks) {
  static std::mutex mutex;
  static std::weak_ptr<Communicator> shared;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Communicator> communicator = shared.lock();
  if (communicator == nullptr) shared = communicator = JoinRanks(ranks);
  return communicator;
}

// Warns that each process trains alone, and overwrites the others' snapshots.
void WarnOfSingles(const std::optional<RankOptions>& ranks) {
  LOG_IF(WARNING, ranks.has_value())
      << "a launcher has started " << ranks->ranks
      << " processes, but this solver trains alone; use caffe.train(file) or get_solver(file, "
         "ranks=True) to train together";
}

std::shared_ptr<OwnedSolver> BuildSolver(const py::object& file, const std::string& type,
                                         bool keep_all, const std::optional<std::string>& precision,
                                         bool lenient, std::optional<bool> ranks,
                                         const py::object& calibration,
                                         const std::vector<std::string>& overrides) {
  const Definition source(file, "Solver: solver_file", "caffe.SolverParameter");
  const std::string ranges = calibration.is_none() ? "" : PathOf(calibration);
  const GilReleased release;
  const LenientReading reading(lenient);
  auto [param, net_file, changes] = ReadSolver(source, overrides);
  for (const std::string& change : changes) LOG(INFO) << "Override " << change;
  if (!type.empty()) param.set_type(type);
  if (precision) param.set_precision(PrecisionOf(*precision));
  if (!ranges.empty()) param.set_calibration(ranges);
  // A program that has made a message knows what it says.
  SolverOptions options{.keep_all = keep_all,
                        .file = source.file(),
                        .net_file = net_file,
                        .lenient = lenient,
                        .logs_definitions = !source.file().empty()};
  if (ranks == false) return std::make_shared<OwnedSolver>(param, options, 0);
  const std::optional<RankOptions> launched = RanksFromEnvironment();
  if (!ranks) WarnOfSingles(launched);
  if (!ranks || !launched) return std::make_shared<OwnedSolver>(param, options, 0);
  RankOptions own = *launched;
  if (Caffe::mode() == Caffe::GPU) own.gpu = options.gpu = Caffe::device();
  options.communicator = CommunicatorOfProcess(own);
  return std::make_shared<OwnedSolver>(param, options, launched->rank);
}

// Runs `train` without the interpreter's lock. Checks for Python's signals (Ctrl-C) between
// iterations; an exception of a handler ends the training. So does `after_iteration` (or None) by
// returning False.
template <typename Fn>
void Interruptible(OwnedSolver& solver, const py::object& after_iteration, Fn train) {
  const OwnedSolver::Run run(solver);
  std::optional<py::error_already_set> raised;
  int last_iter = solver.iter();
  solver.SetActionFunction([&] {
    const GilAcquired gil;
    if (PyErr_CheckSignals() != 0) {
      raised.emplace();
      return SolverAction::STOP;
    }
    // This function is also called between test batches.
    if (after_iteration.is_none() || solver.iter() == last_iter) return SolverAction::NONE;
    last_iter = solver.iter();
    const bool goes_on = py::cast<bool>(Call(after_iteration));
    return goes_on ? SolverAction::NONE : SolverAction::STOP;
  });
  try {
    const GilReleased release;
    train();
  } catch (...) {
    solver.SetActionFunction(nullptr);
    throw;
  }
  solver.SetActionFunction(nullptr);
  if (raised) throw py::error_already_set(*raised);
}

// Observers of a training run, from train()'s arguments.
struct Watch {
  std::string folder;  // the run's folder: docs/runs.md
  int histograms = 0;
  bool live_line = false;  // see LiveLine; no effect without a terminal

  static Watch Make(const py::object& run_dir, int histograms, bool live_line) {
    const Watch watch{
        .folder = run_dir.is_none() ? "" : PathOf(run_dir),
        .histograms = histograms,
        .live_line = live_line,
    };
    Require(histograms >= 0, "histograms is ", histograms, "; give iterations, or 0 for none");
    Require(histograms == 0 || !watch.folder.empty(),
            "histograms is given without run_dir, where they would be written");
    return watch;
  }
};

// Registers an observer with a solver for its own lifetime.
class Observation {
 public:
  Observation(OwnedSolver& solver, TrainingObserver* observer)
      : solver_(solver), observer_(observer) {
    solver.AddObserver(observer);
  }
  ~Observation() { solver_.RemoveObserver(observer_); }
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

 private:
  OwnedSolver& solver_;
  TrainingObserver* const observer_;
};

// Calls `train` while the run's folder, if any, observes it.
template <typename Fn>
void IntoFolder(OwnedSolver& solver, const Watch& watch, bool resumes, const Fn& train) {
  if (watch.folder.empty() || solver.rank() != 0) return train();
  RunFolder run(watch.folder, {.resumes = resumes, .histograms = watch.histograms});
  const TraceRow row(run.trace(), 0, "compute");
  const Observation observation(solver, &run);
  train();
}

template <typename Fn>
void Watched(OwnedSolver& solver, const Watch& watch, bool resumes, const Fn& train) {
  if (!watch.live_line || solver.rank() != 0) return IntoFolder(solver, watch, resumes, train);
  LiveLine line;
  const Observation observation(solver, &line);
  IntoFolder(solver, watch, resumes, train);
}

void Solve(OwnedSolver& solver, const py::object& resume_file, const py::object& after_iteration,
           const Watch& watch) {
  const std::string file = resume_file.is_none() ? "" : PathOf(resume_file);
  if (!file.empty()) solver.CheckState(file);
  const bool resumes = !file.empty() || solver.iter() > 0;
  Interruptible(solver, after_iteration,
                [&] { Watched(solver, watch, resumes, [&] { solver.Solve(file); }); });
}

void Step(OwnedSolver& solver, int iterations, const py::object& after_iteration,
          const Watch& watch) {
  Require(iterations >= 0, "step: ", iterations, " iterations; give 0 or more");
  const bool resumes = solver.iter() > 0;
  Interruptible(solver, after_iteration,
                [&] { Watched(solver, watch, resumes, [&] { solver.Step(iterations); }); });
}

void AddCallback(OwnedSolver& solver, const py::function& on_start,
                 const py::function& on_gradients_ready) {
  solver.CheckIdle("add a callback");
  Solver::Callbacks callbacks;
  callbacks.on_start = KeptFunction<>(on_start);
  callbacks.on_gradients_ready = KeptFunction<>(on_gradients_ready);
  solver.AddCallbacks(std::move(callbacks));
}

// Adds a function that fills the train net's inputs. It is called before each forward pass, which
// is iter_size times per iteration.
void AddFeed(OwnedSolver& solver, const py::function& on_forward) {
  solver.CheckIdle("add a callback");
  Solver::Callbacks callbacks;
  callbacks.on_forward = KeptFunction<>(on_forward);
  solver.AddCallbacks(std::move(callbacks));
}

}  // namespace

Precision PrecisionOf(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  Precision precision = FP32;
  Require(Precision_Parse(name, &precision), "precision is '", name,
          "'; use 'fp32', 'fp16', 'bf16', 'fp64', 'int8' or 'fake_int8'");
  return precision;
}

void BindSolver(py::module_& module) {
  py::class_<OwnedSolver, std::shared_ptr<OwnedSolver>>(
      module, "Solver", py::dynamic_attr(),
      "Trains a net as a solver prototxt, or a caffe_pb2.SolverParameter, says. One thread at a "
      "time.\n\nRaises IoError for files that cannot be read, InvalidArgument for wrong "
      "definitions.")
      .def(
          py::init(&BuildSolver), py::arg("solver_file"), py::arg("type") = "",
          py::arg("keep_all") = true, py::arg("precision") = py::none(), py::arg("lenient") = false,
          py::arg("ranks") = py::none(), py::arg("calibration") = py::none(),
          py::arg("set") = std::vector<std::string>(),
          "type: instead of the file's. keep_all: every blob can be read between steps; False "
          "trains by the plan of `caffe train`, with fused steps and reused memory, where only "
          "inputs, outputs and parameters can be read. precision: 'fp32', 'fp16', 'bf16', 'fp64' "
          "or 'fake_int8' instead of the file's. lenient: leave out, with a warning each, fields "
          "that are not "
          "Caffe's and layers of unknown type. ranks: True trains together with the other "
          "processes that mpirun, srun or torchrun has started; without it, that there are some is "
          "a warning, which False leaves out. calibration: the file of caffe calibrate that "
          "'fake_int8' needs. set: fields of the definition that are changed, as get_solver() "
          "takes them.")
      .def_property_readonly("rank", Method<OwnedSolver>(&OwnedSolver::rank),
                             "Of this process among those that train together; 0 alone.")
      .def_property_readonly("net", Method<OwnedSolver>(&Solver::shared_net),
                             "The train net. It stays valid when the solver is gone.")
      .def_property_readonly("test_nets", Method<OwnedSolver>(&Solver::test_nets),
                             "The test nets, which share the train net's weights.")
      .def_property_readonly("iter", Method<OwnedSolver>(&Solver::iter), "Iterations done.")
      .def_property_readonly("max_iter", Method<OwnedSolver>(&Solver::max_iter),
                             "Iterations that solve() trains to, also where the file gives epochs.")
      .def_property_readonly("type", Method<OwnedSolver>(&Solver::type), "Name of the update rule.")
      .def_property_readonly("lr", Method<OwnedSolver>(&Solver::LearningRate),
                             "Rate for the current iteration.")
      .def_property_readonly("loss", Method<OwnedSolver>(&Solver::smoothed_loss),
                             "Mean over the last `average_loss` iterations.")
      .def_property_readonly("history", Method<OwnedSolver>(&Solver::history),
                             "The update rule's state, one blob per parameter and kind.")
      .def("_param",
           [](const OwnedSolver& self) { return py::bytes(self.param().SerializeAsString()); })
      .def(
          "solve",
          [](OwnedSolver& self, const py::object& resume_file) {
            Solve(self, resume_file, py::none(), {});
          },
          py::arg("resume_file") = py::none(),
          "Trains to max_iter, from a .solverstate if one is given. Ctrl-C stops it after the "
          "iteration, with a KeyboardInterrupt (and a snapshot, if snapshot_after_train is set).")
      .def(
          "step", [](OwnedSolver& self, int iterations) { Step(self, iterations, py::none(), {}); },
          py::arg("n"),
          "Trains n iterations. Ctrl-C stops it between two, with a KeyboardInterrupt.")
      .def("_solve",
           [](OwnedSolver& self, const py::object& resume_file, const py::object& after_iteration,
              const py::object& run_dir, int histograms, bool live_line) {
             Solve(self, resume_file, after_iteration, Watch::Make(run_dir, histograms, live_line));
           })
      .def("_step",
           [](OwnedSolver& self, int iterations, const py::object& after_iteration,
              const py::object& run_dir, int histograms, bool live_line) {
             Step(self, iterations, after_iteration, Watch::Make(run_dir, histograms, live_line));
           })
      .def(
          "restore",
          [](OwnedSolver& self, const py::object& file) {
            const std::string name = PathOf(file);
            const OwnedSolver::Run run(self);
            const GilReleased release;
            self.CheckState(name);
            self.Restore(name);
          },
          py::arg("state_file"),
          "Continues the run of a .solverstate: iteration, weights, history, random state, place "
          "in "
          "the data. `net` stays the same object.")
      .def(
          "snapshot",
          [](OwnedSolver& self) {
            return TextOf(self.Alone("write a snapshot", [&] { return self.Snapshot(); }));
          },
          "Writes <prefix>_iter_<N>.caffemodel and .solverstate; returns the latter's name.")
      .def(
          "apply_update",
          [](OwnedSolver& self) {
            const OwnedSolver::Run run(self);
            const GilReleased release;
            self.ApplyUpdate();
          },
          "Updates the weights from their gradients, without counting an iteration: for loops that "
          "call net.forward() and net.backward() themselves.")
      .def(
          "share_weights",
          [](OwnedSolver& self, Net& net) { net.ShareTrainedLayersWith(*self.shared_net()); },
          py::arg("net"), "`net` uses the weights of self.net, in its memory, from now on.")
      .def(
          "test", [](OwnedSolver& self) { self.Alone("test", [&] { self.TestAll(); }); },
          "Runs the test nets once and logs the results.")
      .def("_add_feed", AddFeed, py::arg("on_forward"))
      .def_property_readonly("_seed",
                             [](const OwnedSolver& self) { return self.shared_net()->seed(); })
      .def("add_callback", AddCallback, py::arg("on_start"), py::arg("on_gradients_ready"),
           "Functions without arguments: before the first forward of each iteration, and between "
           "the last backward and the update. What they raise ends the training.");
}

}  // namespace caffe::python
