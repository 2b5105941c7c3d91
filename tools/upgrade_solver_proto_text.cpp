// Upgrades a solver definition from any older format to the current one.
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_solver.hpp"
#include "tools/upgrade_main.hpp"

int main(int argc, char** argv) {
  return caffe::tools::RunUpgrade<caffe::SolverParameter>(
      argc, argv, "upgrade_solver_proto_text", "solver definition", "SolverParameter text",
      [](const std::string& input, auto* solver) { caffe::ReadTextProto(input, solver); },
      [](const std::string& input, auto* solver) { return caffe::UpgradeSolver(input, solver); },
      [](const std::string& output, const auto& solver) { caffe::WriteTextProto(output, solver); });
}
