// caffe config: prints the settings from the user's configuration and the environment.
#include <cstdlib>
#include <iostream>
#include <string>

#include "caffe/core/printable.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/user_defaults.hpp"

namespace caffe::tools {
namespace {

// Environment variables that change what the program does.
constexpr const char* kVariables[] = {"CAFFE_CONFIG",         "CAFFE_ALGORITHM_CACHE",
                                      "CAFFE_DISABLE_PASSES", "CAFFE_DUMP_GRAPH",
                                      "CAFFE_JPEG_DECODER",   "CAFFE_TIME_ALGORITHMS",
                                      "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
                                      "ONEDNN_MAX_CPU_ISA",   "PYTHON"};

class Config : public Command {
 public:
  explicit Config(CLI::App& /*app*/) {}

  void Run() override {
    const UserDefaults& defaults = UserDefaults::Get();
    if (defaults.file().empty() && defaults.reason() == "CAFFE_CONFIG") {
      std::cout << "no configuration (CAFFE_CONFIG is empty): name a file in it, or unset it for "
                   "~/.config/cortado/config.prototxt\n";
    } else if (defaults.file().empty()) {
      std::cout << "no configuration (" << defaults.reason()
                << "): write cortado/config.prototxt there, or name a file in CAFFE_CONFIG\n";
    } else {
      std::cout << defaults.file() << " (" << defaults.reason() << ")\n";
      Show(defaults);
    }
    for (const char* name : kVariables) {
      const char* const value = std::getenv(name);
      if (value != nullptr) std::cout << "environment: " << name << "=" << Printable(value) << "\n";
    }
  }

 private:
  static void Show(const UserDefaults& defaults) {
    for (const FlagDefault& flag : defaults.content().flag()) {
      std::cout << "  caffe " << (flag.command().empty() ? "*" : flag.command()) << " --"
                << flag.name() << "=" << flag.value() << "\n";
    }
    SolverParameter none;
    for (const std::string& note : defaults.PutInto(&none))
      std::cout << "  solver" << note.substr(defaults.file().size()) << "\n";
  }
};

const CommandRegistrar<Config> config_registrar(
    "config",
    {.purpose = Purpose::kProgram,
     .summary = "show the user's defaults and where they come from",
     .about = "Shows the file of the user's defaults (CAFFE_CONFIG, or cortado/config.prototxt in "
              "~/.config), the flags and fields of solvers that it sets, and the variables of the "
              "environment that change what the program does.",
     .examples = "caffe config\n"
                 "CAFFE_CONFIG=team.prototxt caffe config"});

}  // namespace
}  // namespace caffe::tools
