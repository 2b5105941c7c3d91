// SolverGroup: solvers that train one net together, each on its part of the data.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/solver.hpp"

namespace caffe {

class Trace;

// Each worker has its own net with equal parameters, and an equal share of the processor's threads.
// Gradients, running statistics and losses are averaged over all workers, so that all make the same
// update: that of a single worker with their batches joined. Test batches are divided, and their
// results summed in the order of one worker. Worker 0 logs and writes snapshots, which any number
// of workers can resume. Runs with the same number of workers are bitwise reproducible.
//
// Files of NVCaffe give the batch_size of all workers together; it is divided among them. See
// docs/distributed.md.
class CAFFE_EXPORT SolverGroup {
 public:
  // With one worker, uses the solver of `param` itself, in the calling thread. Throws
  // InvalidArgument unless `workers` is positive, and what Solver's constructor throws.
  SolverGroup(const SolverParameter& param, const SolverOptions& options, int workers);
  // One worker for each of these GPUs, given by number; Caffe::mode() must be GPU. Throws
  // InvalidArgument if there is no such GPU or one is named twice, and Unsupported for several
  // without NCCL.
  SolverGroup(const SolverParameter& param, const SolverOptions& options,
              const std::vector<int>& gpus);
  ~SolverGroup();
  SolverGroup(const SolverGroup&) = delete;
  SolverGroup& operator=(const SolverGroup&) = delete;

  // See Solver. If a worker fails, all end and the first error is thrown; after that the group can
  // only be destroyed.
  void Solve(const std::string& resume_file = "");
  void Step(int iterations);
  void Restore(const std::string& state_file);
  std::string Snapshot();

  int workers() const { return static_cast<int>(solvers_.size()); }
  // Only between the calls above. Worker 0's action function is that of the group.
  Solver& solver(int worker) { return *solvers_.at(worker); }

 private:
  void MakeSolvers(SolverParameter param, const SolverOptions& options,
                   const std::vector<int>& gpus);
  void RunAll(const std::function<void(int worker)>& work);

  std::vector<std::shared_ptr<Communicator>> communicators_;
  Trace* trace_ = nullptr;
  std::vector<std::unique_ptr<Solver>> solvers_;
};

}  // namespace caffe
