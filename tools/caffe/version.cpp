// caffe version: prints the version, and what it computes with here.
#include <iostream>

#include "caffe/common.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

class PrintVersion : public Command {
 public:
  explicit PrintVersion(CLI::App& app) { AddJsonFlag(app, &json_); }

  void Run() override {
    if (!json_) {
      std::cout << "caffe version " << Version() << "\n" << DescribeCpu() << "\n";
      return;
    }
    JsonObject root;
    PutJson(&root, "version", Version());
    PutJson(&root, "cpu", DescribeCpu());
    std::cout << FormatJson(root);
  }

 private:
  bool json_ = false;
};

const CommandRegistrar<PrintVersion> print_version_registrar(
    "version", {.purpose = Purpose::kProgram,
                .summary = "print the version",
                .about = "Prints the version of the program, the processor's instructions, and the "
                         "library that computes convolutions.",
                .examples = "caffe version\n"
                            "caffe version --json"});

}  // namespace
}  // namespace caffe::tools
