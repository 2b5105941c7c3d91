// Solver: trains a net as a SolverParameter says.
//
//     const auto solver = caffe::MakeSolver("solver.prototxt");  // caffe/solver_factory.hpp
//     solver->Step(100);
//     std::printf("loss %g\n", solver->smoothed_loss());
//     solver->Snapshot();
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/export.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

class Communicator;
class Trace;
class TrainingObserver;

struct SolverAction {
  enum Enum { NONE, STOP, SNAPSHOT };
};

struct SolverOptions {
  // Kind of plan of the train net; see NetOptions. `caffe train` uses false.
  bool keep_all = true;
  // The solver's file, for the default snapshot prefix and relative paths.
  std::string file;
  // The prototxt that net_param was read from, if any: errors of its layers begin with positions in
  // that file.
  std::string net_file = {};
  // Reads the solver's nets leniently; see NetOptions.
  bool lenient = false;
  // The GPU's number; see NetOptions.
  std::optional<int> gpu;
  // Connects several solvers that train one net together: SolverGroup sets it for those of one
  // process, JoinRanks() creates it for several processes (caffe/ranks.hpp).
  std::shared_ptr<Communicator> communicator;
  // Layers of the train net that get `parallel: SPLIT_OUTPUT`, by name; see
  // caffe/split_choice.hpp. The same on all ranks.
  std::vector<std::string> split_layers = {};
  // Records the times of gradient reductions; may be null, otherwise must outlive the solver.
  Trace* trace = nullptr;
  // For `watchdog: "abort"`: called when an aborted run has written its snapshot, or, from another
  // thread, when it cannot. Unwinding would have to wait for the hanging thread, so a program ends
  // itself here. If empty, an error is thrown.
  std::function<void(const std::string& why)> give_up;
  // Logs the definitions of the solver and its nets, and each layer with the shapes of its blobs,
  // as Caffe does; false logs a line for each net.
  bool logs_definitions = true;
};

// A train net, its test nets, and the optimizer's state.
//
// One thread at a time. Errors are exceptions, except that a snapshot that cannot be written during
// training is logged; the last good one is kept.
//
// Solvers of several processes must be constructed, trained and restored by the same calls in all
// of them. They compare version, solver, net and plan, take seed and weights from rank 0, and
// resume from the file that rank 0 names. An exception in one of them ends all. Throws
// InvalidArgument if they differ, and DeviceError if one is lost.
class CAFFE_EXPORT Solver {
 public:
  explicit Solver(const SolverParameter& param, const SolverOptions& options = {});
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  // Trains to max_iter, resuming from a .solverstate (or .solverstate.h5) if one is given.
  void Solve(const std::string& resume_file = "");
  // Trains for `iterations` iterations from the current one, with the tests and snapshots between
  // them.
  void Step(int iterations);

  // Continues a run: restores iteration, weights, history and, if recorded, the random state and
  // the position in the data, so that the result is that of an uninterrupted run. Throws IoError or
  // InvalidArgument for a file of another kind, solver type or net.
  void Restore(const std::string& state_file);
  // Writes <prefix>_iter_<N>.caffemodel and .solverstate (or .h5), each completely or not at all.
  // Returns the state file's name. Throws IoError.
  std::string Snapshot();
  // Updates the parameters from their gradients, at the learning rate of the current iteration,
  // without advancing the iteration: for callers that run the net themselves.
  void ApplyUpdate();
  // Runs each test net once over its test iterations and logs the results.
  void TestAll();

  Net& net();
  // The net outlives the solver while the pointer is kept.
  const std::shared_ptr<Net>& shared_net() const;
  const std::vector<std::shared_ptr<Net>>& test_nets() const;
  // Iterations done so far.
  int iter() const;
  // The iteration at which Solve() ends: max_iter, or the iterations of max_epoch passes over the
  // data. Throws InvalidArgument if neither is set.
  int max_iter() const;
  const SolverParameter& param() const;
  const std::string& type() const;
  // Learning rate of the current iteration.
  double LearningRate();
  // One blob per learnable parameter and state tensor of the optimizer, in Caffe's order.
  const std::vector<std::shared_ptr<Blob>>& history() const;
  // Loss averaged over the last `average_loss` iterations.
  float smoothed_loss() const;

  // `function` is called after each iteration and before each test batch.
  void SetActionFunction(std::function<SolverAction::Enum()> function);

  struct Callbacks {
    std::function<void()> on_start;               // before the first forward of an iteration
    std::function<void()> on_forward;             // before each forward (iter_size of them)
    std::function<void(float loss)> on_backward;  // after each backward
    std::function<void()> on_gradients_ready;     // before the update
  };
  void AddCallbacks(Callbacks callbacks);
  // The observer must outlive the solver, or be removed before it is destroyed. Of several workers
  // only the first calls its observers.
  void AddObserver(TrainingObserver* observer);
  void RemoveObserver(TrainingObserver* observer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
