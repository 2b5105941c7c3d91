#include "tools/caffe/devices.hpp"

#include <glog/logging.h>

#include <charconv>
#include <sstream>

#include "caffe/common.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

std::vector<int> AllGpus() {
  std::vector<int> gpus;
  for (int id = 0; id < NumGpus(); ++id) gpus.push_back(id);
  Require(!gpus.empty(), "--gpu all: this machine has no GPU; leave out --gpu");
  return gpus;
}

void RunOnGpu(int gpu) {
  Caffe::SetDevice(gpu);
  Caffe::set_mode(Caffe::GPU);
}

}  // namespace

void AddGpu(CLI::App& app, std::string* gpu, const std::string& description) {
  app.add_option("--gpu", *gpu, description)->type_name("GPUS")->default_str("the CPU");
}

std::vector<int> ParseGpus(const std::string& gpu) {
  if (gpu == "all") return AllGpus();
  std::vector<int> gpus;
  bool is_understood = true;
  for (const std::string& part : SplitByComma(gpu)) {
    const char *begin = part.data(), *end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(begin, end, gpus.emplace_back());
    is_understood = is_understood && error == std::errc() && rest == end && gpus.back() >= 0;
  }
  Require(
      gpu.empty() || (is_understood && !gpus.empty()), "--gpu is '", gpu,
      "'; give numbers of GPUs separated by commas, or 'all' (caffe device_query --gpu all lists "
      "them)");
  return gpus;
}

std::vector<std::string> DescribeGpus(const std::vector<int>& gpus) {
  std::vector<std::string> descriptions;
  for (const int gpu : gpus) descriptions.push_back(DescribeGpu(gpu));
  return descriptions;
}

void UseCpu() {
  LOG(INFO) << "Use CPU.";
  LOG(INFO) << "Device: " << DescribeCpu();
  Caffe::set_mode(Caffe::CPU);
}

void UseGpus(const std::vector<int>& gpus) {
  const std::vector<std::string> descriptions = DescribeGpus(gpus);
  std::ostringstream numbers;
  for (size_t i = 0; i < gpus.size(); ++i) numbers << (i == 0 ? "" : ", ") << gpus[i];
  LOG(INFO) << "Using GPUs " << numbers.str();
  for (size_t i = 0; i < gpus.size(); ++i) {
    LOG(INFO) << "GPU " << gpus[i] << ": " << descriptions[i];
  }
  RunOnGpu(gpus[0]);
}

void UseDevice(const std::string& gpu) {
  const std::vector<int> gpus = ParseGpus(gpu);
  if (gpus.empty()) return UseCpu();
  const std::string description = DescribeGpu(gpus[0]);
  LOG(INFO) << "Use GPU with device ID " << gpus[0];
  LOG(INFO) << "GPU device name: " << description;
  for (size_t i = 1; i < gpus.size(); ++i) {
    LOG(INFO) << "Not using GPU #" << gpus[i] << " for single-GPU function";
  }
  RunOnGpu(gpus[0]);
}

}  // namespace caffe::tools
