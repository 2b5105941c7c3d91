#include "caffe/compat/caffe/solver.hpp"

#include <utility>

#include "caffe/compat/caffe/sgd_solvers.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/upgrade_solver.hpp"
#include "caffe/solver_factory.hpp"
#include "caffe/solvers/snapshot_files.hpp"
#include "compat/net_access.hpp"
#include "compat/net_blob.hpp"

namespace caffe::bvlc {
namespace {

// Replaces the net files that the solver names by their definitions.
void ReadNets(SolverParameter* param) {
  const auto read = [](const char* field, const string& file, NetParameter* net) {
    *net = ReadNetOfSolver(field, file);
  };
  if (param->has_net()) read("net", param->net(), param->mutable_net_param());
  if (param->has_train_net())
    read("train_net", param->train_net(), param->mutable_train_net_param());
  for (const string& file : param->test_net()) read("test_net", file, param->add_test_net_param());
  param->clear_net();
  param->clear_train_net();
  param->clear_test_net();
}

void MakeSolverDouble(SolverParameter* param) {
  param->set_precision(FP64);
  ReadNets(param);
  if (param->has_net_param()) MakeDouble(param->mutable_net_param());
  if (param->has_train_net_param()) MakeDouble(param->mutable_train_net_param());
  for (NetParameter& net : *param->mutable_test_net_param()) MakeDouble(&net);
}

template <typename Dtype>
std::unique_ptr<SolverAccess> MakeSolver(SolverParameter param, const string& file) {
  UpgradeSolver(file.empty() ? "the solver's message" : file, &param);
  if constexpr (kDTypeOf<Dtype> == DType::kDouble) MakeSolverDouble(&param);
  SolverOptions options;
  options.file = file;
  return std::make_unique<SolverAccess>(std::make_unique<::caffe::Solver>(param, options));
}

SolverParameter WithType(SolverParameter param, const string& type) {
  UpgradeSolver("the solver's message", &param);
  param.set_type(type);
  return param;
}

}  // namespace

template <typename Dtype>
Solver<Dtype>::Solver(const SolverParameter& param) : access_(MakeSolver<Dtype>(param, "")) {
  Show();
}

template <typename Dtype>
Solver<Dtype>::Solver(const string& param_file)
    : access_(MakeSolver<Dtype>(ReadSolverText(param_file), param_file)) {
  Show();
}

template <typename Dtype>
Solver<Dtype>::~Solver() = default;

template <typename Dtype>
void Solver<Dtype>::Show() {
  ::caffe::Solver& solver = *access_->solver;
  param_ = solver.param();
  type_ = solver.type();
  net_ = std::make_shared<Net<Dtype>>(std::make_unique<NetAccess>(solver.shared_net()));
  for (const auto& net : solver.test_nets())
    test_nets_.push_back(std::make_shared<Net<Dtype>>(std::make_unique<NetAccess>(net)));
}

template <typename Dtype>
void Solver<Dtype>::SetActionFunction(ActionCallback func) {
  action_function_ = std::move(func);
  access_->solver->SetActionFunction(
      [this] { return static_cast<::caffe::SolverAction::Enum>(GetRequestedAction()); });
}

template <typename Dtype>
SolverAction::Enum Solver<Dtype>::GetRequestedAction() {
  return action_function_ ? action_function_() : SolverAction::NONE;
}

template <typename Dtype>
void Solver<Dtype>::Solve(const char* resume_file) {
  access_->solver->Solve(resume_file == nullptr ? "" : resume_file);
}
template <typename Dtype>
void Solver<Dtype>::Step(int iters) {
  access_->solver->Step(iters);
}
template <typename Dtype>
void Solver<Dtype>::Restore(const char* resume_file) {
  access_->solver->Restore(resume_file);
}
template <typename Dtype>
void Solver<Dtype>::Snapshot() {
  access_->solver->Snapshot();
}
template <typename Dtype>
int Solver<Dtype>::iter() const {
  return access_->solver->iter();
}

template <typename Dtype>
void Solver<Dtype>::add_callback(Callback* value) {
  callbacks_.push_back(value);
  access_->solver->AddCallbacks({.on_start = [value] { value->on_start(); },
                                 .on_gradients_ready = [value] { value->on_gradients_ready(); }});
}

template <typename Dtype>
void Solver<Dtype>::CheckSnapshotWritePermissions() {
  CheckSnapshotWritable(param_, "");
}

template <typename Dtype>
void Solver<Dtype>::ApplyUpdate() {
  access_->solver->ApplyUpdate();
}

template <typename Dtype>
SGDSolver<Dtype>::SGDSolver(const SolverParameter& param, const string& type)
    : Solver<Dtype>(WithType(param, type)) {
  ShowHistory();
}

template <typename Dtype>
SGDSolver<Dtype>::SGDSolver(const string& param_file, const string& type)
    : SGDSolver(ReadSolverText(param_file), type) {}

template <typename Dtype>
void SGDSolver<Dtype>::ShowHistory() {
  for (const auto& blob : this->access().solver->history())
    history_.push_back(std::make_shared<Blob<Dtype>>(std::make_shared<NetBlob>(blob)));
}

template <typename Dtype>
Dtype SGDSolver<Dtype>::GetLearningRate() {
  return static_cast<Dtype>(this->access().solver->LearningRate());
}

template <typename Dtype>
Solver<Dtype>* SolverRegistry<Dtype>::CreateSolver(const SolverParameter& param) {
  SolverParameter upgraded = param;
  UpgradeSolver("the solver's message", &upgraded);
  return new SGDSolver<Dtype>(upgraded, upgraded.type());
}

template <typename Dtype>
vector<string> SolverRegistry<Dtype>::SolverTypeList() {
  return ::caffe::SolverTypeList();
}

template class Solver<float>;
template class Solver<double>;
template class SGDSolver<float>;
template class SGDSolver<double>;
template class SolverRegistry<float>;
template class SolverRegistry<double>;

}  // namespace caffe::bvlc
