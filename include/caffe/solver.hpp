// Solver: trains a net as a SolverParameter says.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

struct SolverOptions {
  // As NetOptions::keep_all, for the training net and the test nets. `caffe train` says false.
  bool keep_all = true;
};

// What a program that watches for signals asks of a running solver.
enum class SolverAction { kNone, kStop, kSnapshot };
using SolverActionFunction = std::function<SolverAction()>;

// Called inside a step: before the first forward pass, before each of the iter_size forward passes
// (the place to fill input blobs), and when all gradients of the iteration have been added up (not
// yet divided by iter_size). Each may be empty.
struct SolverCallback {
  std::function<void()> on_start;
  std::function<void()> on_forward;
  std::function<void()> on_gradients_ready;
};

// Reads a solver.prototxt, brings it into today's form and fills in snapshot_prefix: the file's
// name without its ending when it is not given, that name inside the folder when it is a folder.
SolverParameter ReadSolverParameter(const std::string& file);

// One thread at a time. Throws InvalidArgument for a wrong definition, IoError for files,
// Unsupported for what this build lacks.
class Solver {
 public:
  // Builds the training net and the test nets and loads `weights`.
  explicit Solver(const SolverParameter& param, const SolverOptions& options = {});
  ~Solver();
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;

  const SolverParameter& param() const;
  // "SGD".
  const std::string& type() const;
  // Restore may replace it, so ask again afterwards.
  const std::shared_ptr<Net>& net() const;
  const std::vector<std::shared_ptr<Net>>& test_nets() const;
  // Updates done so far.
  int iter() const;
  // State of the update rule, one or more blobs per learnable parameter.
  const std::vector<std::shared_ptr<Blob>>& history() const;
  // The last average loss, as displayed.
  double smoothed_loss() const;

  // Runs `iterations` updates, with the tests, log lines and snapshots that fall due. A snapshot
  // that fails here is logged as an error and training goes on.
  void Step(int iterations);
  // Trains until max_iter, from a .solverstate[.h5] if one is given, then takes the last snapshot.
  void Solve(const std::string& resume_file = "");

  // Continues as if training had never stopped: weights, history, random draws and data.
  void Restore(const std::string& state_file);
  // Writes <prefix>_iter_<iter>.caffemodel and .solverstate (with snapshot_format HDF5, ".h5" is
  // appended); returns the state file's name. Throws IoError; earlier snapshots are never touched.
  std::string Snapshot();

  // Runs all test nets, or one of them, and logs their outputs. False when an action stopped it.
  bool TestAll();
  bool Test(int test_net);

  // Asked after each iteration and before each test batch.
  void SetActionFunction(SolverActionFunction function);
  void AddCallback(SolverCallback callback);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe
