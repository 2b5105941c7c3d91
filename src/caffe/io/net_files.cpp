#include "caffe/io/net_files.hpp"

#include "caffe/error.hpp"
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/io/upgrade_solver.hpp"

namespace caffe {
namespace {

// A state in place of weights is the likeliest mistake, so it gets a text of its own.
bool IsSolverState(const std::string& path) {
  SolverState state;
  try {
    ReadBinaryProto(path, &state);
  } catch (const Error&) {
    return false;
  }
  return state.history_size() > 0;
}

}  // namespace

NetParameter ReadNetText(const std::string& path) {
  NetParameter net;
  ReadTextProto(path, &net);
  UpgradeNet(path, &net);
  return net;
}

void SetNetState(Phase phase, int level, const std::vector<std::string>& stages,
                 NetParameter* net) {
  NetState* state = net->mutable_state();
  state->set_phase(phase);
  state->set_level(level);
  for (const std::string& stage : stages) state->add_stage(stage);
}

NetParameter ReadNetBinary(const std::string& path) {
  NetParameter net;
  try {
    ReadBinaryProto(path, &net);
  } catch (const IoError&) {
    if (!IsSolverState(path)) throw;
    throw IoError(path +
                  ": holds a solver's state, not weights; give the .caffemodel beside it, or "
                  "this file to -snapshot");
  }
  AdoptBvlcFields(path, &net);
  UpgradeNet(path, &net);
  return net;
}

SolverParameter ReadSolverText(const std::string& path) {
  SolverParameter solver;
  ReadTextProto(path, &solver);
  UpgradeSolver(path, &solver);
  return solver;
}

}  // namespace caffe
