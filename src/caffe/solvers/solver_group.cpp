#include "caffe/solver_group.hpp"

#include <omp.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "caffe/common.hpp"
#include "caffe/core/start_thread.hpp"
#include "caffe/distributed/gpu_communicators.hpp"
#include "caffe/distributed/local_communicator.hpp"
#include "caffe/error.hpp"
#include "caffe/trace.hpp"

namespace caffe {

SolverGroup::SolverGroup(const SolverParameter& param, const SolverOptions& options, int workers)
    : trace_(options.trace) {
  Require(workers > 0, "there cannot be ", workers, " workers; give a positive number");
  communicators_ = MakeLocalCommunicators(workers);
  MakeSolvers(param, options, {});
}

SolverGroup::SolverGroup(const SolverParameter& param, const SolverOptions& options,
                         const std::vector<int>& gpus)
    : trace_(options.trace) {
  Require(!gpus.empty(), "no GPU is named; give the number of at least one");
  Require(std::set<int>(gpus.begin(), gpus.end()).size() == gpus.size(),
          "a GPU is named twice; each trains one copy of the net");
  communicators_ = gpus.size() == 1 ? MakeLocalCommunicators(1) : MakeGpuCommunicators(gpus);
  MakeSolvers(param, options, gpus);
}

void SolverGroup::MakeSolvers(SolverParameter param, const SolverOptions& options,
                              const std::vector<int>& gpus) {
  solvers_.resize(communicators_.size());
  if (workers() > 1 && param.random_seed() < 0) {  // all need the same seed
    param.set_random_seed(
        static_cast<int64_t>(Caffe::NextSeed() & std::numeric_limits<int64_t>::max()));
  }
  RunAll([&](int worker) {
    SolverOptions own = options;
    own.communicator = communicators_[worker];
    if (!gpus.empty()) own.gpu = gpus[worker];
    solvers_[worker] = std::make_unique<Solver>(param, own);
  });
}

SolverGroup::~SolverGroup() = default;

void SolverGroup::RunAll(const std::function<void(int)>& work) {
  if (workers() == 1) {
    const TraceRow row(trace_, 0, "compute");
    work(0);
    return;
  }
  // Equal shares: the number of threads determines the order of sums within a worker, and all
  // workers must compute the same results.
  const int share = std::max(1, omp_get_max_threads() / workers());
  std::mutex mutex;
  std::exception_ptr first_error;
  std::vector<std::thread> threads;
  // Reserves first: an exception while storing a running thread would end the program.
  threads.reserve(communicators_.size());
  const auto fail = [&](int worker, const std::exception_ptr& error) {
    std::lock_guard lock(mutex);
    if (!first_error) first_error = error;
    communicators_[worker]->Abort(first_error);
  };
  for (int worker = 0; worker < workers(); ++worker) {
    try {
      threads.push_back(StartThread(StrCat("worker ", worker, " of ", workers()), [&, worker] {
        omp_set_num_threads(share);  // for kernels launched by this thread
        try {
          const TraceRow row(trace_, worker, "compute");
          work(worker);
        } catch (...) {
          fail(worker, std::current_exception());
        }
      }));
    } catch (...) {
      fail(worker, std::current_exception());
      break;  // running workers see the error and end
    }
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
