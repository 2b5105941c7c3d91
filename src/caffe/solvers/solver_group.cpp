#include "caffe/solver_group.hpp"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

#include "caffe/common.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/trace.hpp"

namespace caffe {

SolverGroup::SolverGroup(const SolverParameter& param, const SolverOptions& options, int workers)
    : trace_(options.trace) {
  Require(workers > 0, "there cannot be ", workers, " workers; give a positive number");
  communicators_ = MakeLocalCommunicators(workers);
  solvers_.resize(static_cast<size_t>(workers));
  SolverParameter common = param;
  if (workers > 1 && common.random_seed() < 0) {  // all need the same
    common.set_random_seed(
        static_cast<int64_t>(Caffe::NextSeed() & std::numeric_limits<int64_t>::max()));
  }
  RunAll([&](int worker) {
    SolverOptions own = options;
    own.communicator = communicators_[worker];
    solvers_[worker] = std::make_unique<Solver>(common, own);
  });
}

SolverGroup::~SolverGroup() = default;

void SolverGroup::RunAll(const std::function<void(int)>& work) {
  if (workers() == 1) {
    const TraceRow row(trace_, 0, "compute");
    work(0);
    return;
  }
  // Equal shares: the number of threads decides the order of sums within a worker, and all must
  // come to the same ones.
  const int share = std::max(1, omp_get_max_threads() / workers());
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < workers(); ++worker) {
    threads.emplace_back([&, worker] {
      omp_set_num_threads(share);  // of this thread's kernels
      const TraceRow row(trace_, worker, "compute");
      try {
        work(worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!first_error) first_error = std::current_exception();
        communicators_[worker]->Abort(first_error);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first_error) std::rethrow_exception(first_error);
}

void SolverGroup::Solve(const std::string& resume_file) {
  RunAll([&](int worker) { solvers_[worker]->Solve(resume_file); });
}

void SolverGroup::Step(int iterations) {
  RunAll([&](int worker) { solvers_[worker]->Step(iterations); });
}

void SolverGroup::Restore(const std::string& state_file) {
  RunAll([&](int worker) { solvers_[worker]->Restore(state_file); });
}

std::string SolverGroup::Snapshot() {
  return solvers_.front()->Snapshot();
}

}  // namespace caffe
