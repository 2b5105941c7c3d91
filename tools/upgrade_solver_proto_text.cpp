// Brings a solver definition of any age into today's form.
#include "caffe/io/binary_format.hpp"
#include "caffe/io/text_format.hpp"
#include "caffe/io/upgrade_solver.hpp"
#include "tools/tool_main.hpp"

int main(int argc, char** argv) {
  return caffe::tools::RunTool(
      argc, argv,
      "Brings a solver definition of any age into today's form.\nUsage: "
      "upgrade_solver_proto_text INPUT OUTPUT",
      2, 2,
      [](const std::vector<std::string>& arguments) {
        const std::string &input = arguments[0], &output = arguments[1];
        caffe::SolverParameter solver;
        caffe::ReadTextProto(input, &solver);
        if (!caffe::UpgradeSolver(input, &solver)) {
          LOG(WARNING) << "File already in latest proto format: " << input;
        }
        caffe::WriteTextProto(output, solver);
        LOG(INFO) << "Wrote upgraded SolverParameter text proto to " << output;
      },
      /*failure=*/2);  // as in Caffe, where scripts tell it from wrong usage
}
