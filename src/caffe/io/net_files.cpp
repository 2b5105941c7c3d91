#include "caffe/io/net_files.hpp"

#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_net.hpp"
#include "caffe/io/upgrade_solver.hpp"

namespace caffe {

NetParameter ReadNetText(const std::string& path) {
  NetParameter net;
  ReadTextProto(path, &net);
  UpgradeNet(path, &net);
  return net;
}

NetParameter ReadNetBinary(const std::string& path) {
  NetParameter net;
  ReadBinaryProto(path, &net);
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
