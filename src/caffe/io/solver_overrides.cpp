#include "caffe/io/solver_overrides.hpp"

#include <string_view>

#include "caffe/error.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/overrides.hpp"

namespace caffe {
namespace {

// Reads the nets of train_net and test_net into the solver, so that paths can refer to them.
void ReadNetsOfPhases(SolverParameter* param) {
  if (param->has_train_net()) {
    *param->mutable_train_net_param() = ReadNetOfSolver("train_net", param->train_net());
    param->clear_train_net();
  }
  for (const std::string& file : param->test_net())
    *param->add_test_net_param() = ReadNetOfSolver("test_net", file);
  param->clear_test_net();
}

// Changes each net of a phase that has the path; there must be at least one.
std::vector<std::string> OverrideNetsOfPhases(const std::string& text, SolverParameter* param) {
  ReadNetsOfPhases(param);
  std::vector<NetParameter*> nets;
  if (param->has_train_net_param()) nets.push_back(param->mutable_train_net_param());
  for (NetParameter& net : *param->mutable_test_net_param()) nets.push_back(&net);
  Require(!nets.empty(), "override '", text, "': the solver names no net");
  std::string error;
  std::vector<std::string> changes;
  for (NetParameter* net : nets) {
    try {
      changes.push_back(ApplyOverride(text, net));
    } catch (const InvalidArgument& refusal) {
      if (error.empty()) error = refusal.what();
    }
  }
  if (changes.empty()) throw InvalidArgument(error);
  return changes;
}

}  // namespace

std::vector<std::string> OverrideSolver(const std::string& text, SolverParameter* param,
                                        std::string* net_file) {
  constexpr std::string_view kNet = "net_param.";
  const bool names_net = text.starts_with(kNet);
  if (text.starts_with("train_net_param.") || text.starts_with("test_net_param["))
    ReadNetsOfPhases(param);
  if (!names_net && !text.starts_with("layer[")) return {ApplyOverride(text, param)};
  if (!names_net && !param->has_net() && !param->has_net_param())
    return OverrideNetsOfPhases(text, param);
  Require(param->has_net() || param->has_net_param(), "override '", text,
          "': the solver has neither net nor net_param; begin with layer[NAME] for each of its "
          "nets, with train_net_param. or test_net_param[0]. for one");
  if (param->has_net()) {
    *param->mutable_net_param() = ReadNetOfSolver("net", param->net());
    *net_file = param->net();
    param->clear_net();
  }
  return {ApplyOverride(names_net ? text.substr(kNet.size()) : text, param->mutable_net_param())};
}

}  // namespace caffe
