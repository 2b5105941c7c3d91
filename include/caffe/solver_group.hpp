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

// Each worker has a net of its own with equal parameters, and an equal share of the processor's
// threads. Gradients, running statistics and losses are averages over all workers, so that all take
// the same step: the one that a single worker takes with their batches joined. Test batches are
// divided, and their results added up in the order of one worker. Worker 0 logs and writes
// snapshots, which any number of workers can resume. The same number repeats a run byte by byte.
//
// Where texts of NVCaffe mean the batch_size of all together, it is divided; see
// docs/distributed.md.
class CAFFE_EXPORT SolverGroup {
 public:
  // With one worker, the solver of `param` itself, in the calling thread. Throws InvalidArgument
  // unless `workers` is positive, and what Solver's constructor throws.
  SolverGroup(const SolverParameter& param, const SolverOptions& options, int workers);
  // One worker for each of these GPUs, by number; Caffe::mode() is GPU. Throws InvalidArgument
  // where there is none or one is named twice, and Unsupported for several without NCCL.
  SolverGroup(const SolverParameter& param, const SolverOptions& options,
              const std::vector<int>& gpus);
  ~SolverGroup();
  SolverGroup(const SolverGroup&) = delete;
  SolverGroup& operator=(const SolverGroup&) = delete;

  // As the solver's. When a worker fails, all end, and the first error is thrown; then the group
  // can only be destroyed.
  void Solve(const std::string& resume_file = "");
  void Step(int iterations);
  void Restore(const std::string& state_file);
  std::string Snapshot();

  int workers() const { return static_cast<int>(solvers_.size()); }
  // Between the calls above. Its action function and that of worker 0 are the group's.
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
