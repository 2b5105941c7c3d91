#include "caffe/compat/caffe/util/upgrade_proto.hpp"

#include "caffe/io/net_files.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/io/upgrade_solver.hpp"

namespace caffe::bvlc {

void ReadNetParamsFromTextFileOrDie(const string& param_file, NetParameter* param) {
  *param = ReadNetText(param_file);
}
void ReadNetParamsFromBinaryFileOrDie(const string& param_file, NetParameter* param) {
  *param = ReadNetBinary(param_file);
}
void ReadSolverParamsFromTextFileOrDie(const string& param_file, SolverParameter* param) {
  *param = ReadSolverText(param_file);
}

bool NetNeedsUpgrade(const NetParameter& net_param) {
  NetParameter copy = net_param;
  return UpgradeNet("the net", &copy);
}
bool UpgradeNetAsNeeded(const string& param_file, NetParameter* param) {
  UpgradeNet(param_file, param);
  return true;
}
bool SolverNeedsTypeUpgrade(const SolverParameter& solver_param) {
  return solver_param.has_solver_type();
}
bool UpgradeSolverAsNeeded(const string& param_file, SolverParameter* param) {
  UpgradeSolver(param_file, param);
  return true;
}

}  // namespace caffe::bvlc
