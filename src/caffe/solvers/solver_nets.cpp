#include "caffe/solvers/solver_nets.hpp"

#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"

namespace caffe {
namespace {

// Later states win over earlier ones; stages add up.
void SetState(Phase phase, const NetState* extra, NetParameter* net) {
  NetState state;
  state.MergeFrom(net->state());
  if (extra != nullptr) state.MergeFrom(*extra);
  state.set_phase(phase);
  *net->mutable_state() = state;
}

}  // namespace

NetParameter TrainNetDefinition(const SolverParameter& param) {
  const int given = param.has_net() + param.has_net_param() + param.has_train_net() +
                    param.has_train_net_param();
  Require(given == 1, "solver: ", given == 0 ? "no training net is given" : "more than one training net is given",
          "; set exactly one of net, net_param, train_net, train_net_param");
  NetParameter net;
  if (param.has_net_param()) {
    net = param.net_param();
  } else if (param.has_train_net_param()) {
    net = param.train_net_param();
  } else {
    net = ReadNetText(param.has_net() ? param.net() : param.train_net());
  }
  SetState(TRAIN, param.has_train_state() ? &param.train_state() : nullptr, &net);
  return net;
}

std::vector<NetParameter> TestNetDefinitions(const SolverParameter& param) {
  std::vector<NetParameter> nets(param.test_net_param().begin(), param.test_net_param().end());
  for (const std::string& file : param.test_net()) nets.push_back(ReadNetText(file));
  const int listed = static_cast<int>(nets.size());
  const bool has_generic = param.has_net() || param.has_net_param();
  Require(has_generic ? param.test_iter_size() >= listed : param.test_iter_size() == listed,
          "solver: ", param.test_iter_size(), " test_iter for ", listed,
          " test net(s); give one test_iter for each");
  if (param.test_iter_size() > listed) {
    const NetParameter generic = param.has_net() ? ReadNetText(param.net()) : param.net_param();
    nets.resize(static_cast<size_t>(param.test_iter_size()), generic);
  }
  const int count = static_cast<int>(nets.size());
  Require(param.test_state_size() == 0 || param.test_state_size() == count, "solver: ",
          param.test_state_size(), " test_state for ", count, " test net(s); give none or one for each");
  Require(count == 0 || param.test_interval() > 0,
          "solver: test_iter is given, but test_interval is ", param.test_interval(),
          "; set test_interval above 0");
  for (int i = 0; i < count; ++i) {
    SetState(TEST, param.test_state_size() > 0 ? &param.test_state(i) : nullptr, &nets[i]);
  }
  return nets;
}

}  // namespace caffe
