// caffe device_query: lists the devices of this machine.
#include <glog/logging.h>

#include <iostream>

#include "caffe/common.hpp"
#include "caffe/gpu_libraries.hpp"
#include "caffe/io/json.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

class DeviceQuery : public Command {
 public:
  explicit DeviceQuery(CLI::App& app) {
    AddGpu(app, &gpu_, "The GPUs to describe, by number separated by commas, or 'all'");
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    JsonObject root;
    PutJson(&root, "cpu", DescribeCpu());
    if (gpu_.empty()) {
      LOG(INFO) << "Device: " << DescribeCpu();
    } else {
      QueryGpus(&root);
    }
    if (json_) std::cout << FormatJson(root);
  }

 private:
  static void QueryLibraries(JsonObject* root) {
    for (const GpuLibrary& library : GpuLibraries()) {
      const std::string file = library.path.empty() ? "" : " (" + library.path + ")";
      const std::string problem = library.problem.empty() ? "" : ": " + library.problem;
      LOG_IF(INFO, problem.empty()) << "Library " << library.name << " " << library.version << file;
      LOG_IF(WARNING, !problem.empty())
          << "Library " << library.name << " " << library.version << file << problem;
      JsonObject* json = AddJson(root, "libraries");
      PutJson(json, "name", library.name);
      PutJson(json, "version", library.version);
      PutJson(json, "path", library.path);
      PutJson(json, "problem", library.problem);
    }
  }

  void QueryGpus(JsonObject* root) const {
    QueryLibraries(root);  // first, because wrong libraries may make GPUs unavailable
    const std::vector<int> gpus = ParseGpus(gpu_);
    const std::vector<std::string> descriptions = DescribeGpus(gpus);
    LOG(INFO) << "Querying GPUs " << gpu_;
    for (size_t i = 0; i < gpus.size(); ++i) {
      LOG(INFO) << "Device " << gpus[i] << ": " << descriptions[i];
      JsonObject* gpu = AddJson(root, "gpus");
      PutJson(gpu, "id", gpus[i]);
      PutJson(gpu, "description", descriptions[i]);
    }
  }

  std::string gpu_;
  bool json_ = false;
};

const CommandRegistrar<DeviceQuery> device_query_registrar(
    "device_query", {.purpose = Purpose::kProgram,
                     .summary = "show this machine's devices",
                     .about = "Describes the processor and the libraries that serve it, or GPUs "
                              "and the versions and files "
                              "of NVIDIA's libraries.",
                     .examples = "caffe device_query\n"
                                 "caffe device_query --gpu=all"});

}  // namespace
}  // namespace caffe::tools
