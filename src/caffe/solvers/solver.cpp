#include "caffe/solver.hpp"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <utility>

#include "caffe/error.hpp"
#include "caffe/io/solver_position.hpp"
#include "caffe/solvers/non_finite.hpp"
#include "caffe/solvers/solver_impl.hpp"
#include "caffe/solvers/solver_lines.hpp"

namespace caffe {
namespace {

// An exception of `fn` in one of several processes also ends the others, which may be waiting for
// it.
template <typename Fn>
auto EndingAll(const SolverOptions& options, const Fn& fn) {
  try {
    return fn();
  } catch (...) {
    const auto& communicator = options.communicator;
    if (communicator != nullptr && communicator->ranks() > communicator->ranks_in_process()) {
      communicator->Abort(std::current_exception());
    }
    throw;
  }
}

// If each machine has its own disk, only rank 0 needs the file.
void RequireSameSnapshot(const std::string& own, const std::string& of_root) {
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename(); };
  Require(own.empty() || name(own) == name(of_root), "this rank was given snapshot ", own,
          ", rank 0 ", of_root.empty() ? "none" : of_root, "; give all ranks the same");
}

}  // namespace

Solver::Solver(const SolverParameter& param, const SolverOptions& options)
    : impl_(EndingAll(options, [&] {
        return WithSolverPosition(options.file,
                                  [&] { return std::make_unique<Impl>(param, options); });
      })) {}

Solver::~Solver() = default;

void Solver::Solve(const std::string& resume_file) {
  Impl& self = *impl_;
  EndingAll(self.options, [&] {
    WithSolverPosition(self.options.file, [&] {
      max_iter();  // must be known
      if (self.param.snapshot_after_train()) self.checkpoints->CheckWritable(self.history());
    });
    const bool is_root = self.parallel.is_root();
    SOLVER_LINE_IF(INFO, is_root) << "Solving " << self.net->name();
    SOLVER_LINE_IF(INFO, is_root) << "Learning Rate Policy: " << self.param.lr_policy();
    const std::string file = self.parallel.BroadcastFromRoot(resume_file);
    RequireSameSnapshot(resume_file, file);
    if (!file.empty()) {
      SOLVER_LINE_IF(INFO, is_root) << "Restoring previous solver status from " << file;
      self.Restore(file);
    }
    self.Observed(this, self.param.max_iter(), [&] { self.SolveFromHere(); });
  });
}

void Solver::Step(int iterations) {
  const int64_t stop = std::min<int64_t>(int64_t{impl_->iter()} + iterations, INT_MAX);
  EndingAll(impl_->options, [&] {
    impl_->Observed(this, static_cast<int>(stop), [&] {
      impl_->Step(iterations);
      CheckStepped(*impl_->context,
                   {impl_->iter(), impl_->iteration->has_updated(), impl_->checkpoints->last()});
    });
  });
}
void Solver::Restore(const std::string& state_file) {
  EndingAll(impl_->options, [&] { impl_->Restore(impl_->parallel.BroadcastFromRoot(state_file)); });
}
std::string Solver::Snapshot() {
  return impl_->Snapshot();
}
void Solver::TestAll() {
  EndingAll(impl_->options, [&] { impl_->TestAll(/*chooses=*/false); });
}
Net& Solver::net() {
  return *impl_->net;
}
const std::shared_ptr<Net>& Solver::shared_net() const {
  return impl_->net;
}
void Solver::ApplyUpdate() {
  if (impl_->parallel.spans_processes() || impl_->split->are_there()) {
    throw Unsupported(
        "solver: ApplyUpdate() uses the gradients of this process alone, but several train "
        "together; use Step()");
  }
  impl_->iteration->ApplyUpdate();
}
const std::vector<std::shared_ptr<Net>>& Solver::test_nets() const {
  return impl_->tests->nets();
}
int Solver::iter() const {
  return impl_->iter();
}
int Solver::max_iter() const {
  Require(impl_->param.has_max_iter(),
          "solver: max_iter is not set; set the number of iterations, or max_epoch");
  return impl_->param.max_iter();
}
const SolverParameter& Solver::param() const {
  return impl_->length->given();
}
const std::string& Solver::type() const {
  return impl_->param.type();
}
double Solver::LearningRate() {
  return impl_->iteration->LearningRate();
}
const std::vector<std::shared_ptr<Blob>>& Solver::history() const {
  return impl_->history();
}
float Solver::smoothed_loss() const {
  return impl_->iteration->loss().mean();
}
void Solver::SetActionFunction(std::function<SolverAction::Enum()> function) {
  impl_->action_function = std::move(function);
}
void Solver::AddCallbacks(Callbacks callbacks) {
  impl_->callbacks.push_back(std::move(callbacks));
}
void Solver::AddObserver(TrainingObserver* observer) {
  if (impl_->parallel.is_root()) impl_->reporter->Add(observer);
}
void Solver::RemoveObserver(TrainingObserver* observer) {
  impl_->reporter->Remove(observer);
}

}  // namespace caffe
