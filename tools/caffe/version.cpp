// caffe version: prints the version.
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
      std::cout << "caffe version " << Version() << "\n";
      return;
    }
    JsonObject root;
    PutJson(&root, "version", Version());
    std::cout << FormatJson(root);
  }

 private:
  bool json_ = false;
};

const CommandRegistrar<PrintVersion> print_version_registrar(
    "version", {.purpose = Purpose::kProgram,
                .summary = "print the version",
                .about = "Prints the version of the program.",
                .examples = "caffe version\n"
                            "caffe version --json"});

}  // namespace
}  // namespace caffe::tools
