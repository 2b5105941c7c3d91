// Solver definitions as text: parsed, upgraded and, if they contain a small net, created and run
// for some iterations. A solver writes no snapshot here.
#include <algorithm>

#include "caffe/io/net_files.hpp"
#include "caffe/solver.hpp"
#include "tests/fuzz/bounded_net.hpp"
#include "tests/fuzz/fuzz_input.hpp"

namespace {

bool IsBounded(const caffe::NetParameter& net) {
  for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
    caffe::NetParameter state = net;
    state.mutable_state()->set_phase(phase);
    const caffe::NetParameter filtered = caffe::Net::FilterNet(state);
    if (!caffe::fuzz::CanBePlanned(filtered) ||
        !caffe::fuzz::CanBeRun(caffe::Net(filtered, {.keep_all = false, .allocate = false}))) {
      return false;
    }
  }
  return true;
}

// Removes fields that name files or would make the run long.
bool IsBounded(caffe::SolverParameter* solver) {
  solver->clear_snapshot();
  solver->clear_snapshot_prefix();
  solver->set_snapshot_after_train(false);
  solver->clear_weights();
  solver->set_solver_mode(caffe::SolverParameter::CPU);
  if (solver->has_net() || solver->has_train_net() || solver->test_net_size() > 0) return false;
  if (!solver->has_net_param() || solver->test_net_param_size() > 2) return false;
  solver->set_iter_size(std::min(solver->iter_size(), 3));
  for (int& batches : *solver->mutable_test_iter()) batches = std::min(batches, 3);
  return IsBounded(solver->net_param()) &&
         std::ranges::all_of(solver->test_net_param(),
                             [](const caffe::NetParameter& net) { return IsBounded(net); });
}

}  // namespace

FUZZ_TARGET(solver_text) {
  return caffe::fuzz::Try([&] {
    const caffe::fuzz::MemoryFile file(caffe::fuzz::View(data, size));
    caffe::SolverParameter param = caffe::ReadSolverText(file.path());
    if (!IsBounded(&param)) return;
    caffe::Solver(param).Step(3);
  });
}
