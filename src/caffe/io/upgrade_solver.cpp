#include "caffe/io/upgrade_solver.hpp"

#include <glog/logging.h>

#include "caffe/error.hpp"
#include "caffe/io/definition_texts.hpp"
#include "caffe/io/upgrade_net.hpp"

namespace caffe {
namespace {

const char* TypeName(SolverParameter::SolverType type) {
  switch (type) {
    case SolverParameter::SGD:
      return "SGD";
    case SolverParameter::NESTEROV:
      return "Nesterov";
    case SolverParameter::ADAGRAD:
      return "AdaGrad";
    case SolverParameter::RMSPROP:
      return "RMSProp";
    case SolverParameter::ADADELTA:
      return "AdaDelta";
    case SolverParameter::ADAM:
      return "Adam";
    case SolverParameter::SAG:
      return "SAG";
  }
  throw InternalError("TypeName: unknown solver_type");
}

}  // namespace

bool UpgradeSolver(const std::string& source_name, SolverParameter* solver) {
  WithContext(source_name, [&] { CheckTexts(*solver); });
  bool changed = false;
  if (solver->has_solver_type()) {
    const std::string type = TypeName(solver->solver_type());
    Require(!solver->has_type(), source_name,
            ": both solver_type: ", SolverParameter::SolverType_Name(solver->solver_type()),
            " and type: \"", solver->type(), "\" are given; keep type");
    solver->set_type(type);
    solver->clear_solver_type();
    LOG(INFO) << "Upgraded " << source_name << ": solver_type to type: \"" << type << '"';
    changed = true;
  }
  if (solver->has_net_param()) {
    changed |= UpgradeNet(source_name + " (net_param)", solver->mutable_net_param());
  }
  if (solver->has_train_net_param()) {
    changed |= UpgradeNet(source_name + " (train_net_param)", solver->mutable_train_net_param());
  }
  for (NetParameter& net : *solver->mutable_test_net_param()) {
    changed |= UpgradeNet(source_name + " (test_net_param)", &net);
  }
  return changed;
}

}  // namespace caffe
