// caffe device_query: this machine's devices.
#include <glog/logging.h>

#include "caffe/common.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/devices.hpp"
#include "tools/caffe/flags.hpp"

namespace caffe::tools {
namespace {

void DeviceQuery(const std::string&) {
  if (FLAGS_gpu.empty()) {
    LOG(INFO) << "Device: " << DescribeCpu();
    return;
  }
  const std::vector<int> gpus = GpusFromFlag();
  const std::vector<std::string> descriptions = DescribeGpus(gpus);
  LOG(INFO) << "Querying GPUs " << FLAGS_gpu;
  for (size_t i = 0; i < gpus.size(); ++i) {
    LOG(INFO) << "Device " << gpus[i] << ": " << descriptions[i];
  }
}

const CommandRegistrar registrar("device_query",
                                 {.help = "show this machine's devices", .run = DeviceQuery});

}  // namespace
}  // namespace caffe::tools
