// --gpu: which devices a command runs on.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace caffe::tools {

void AddGpu(CLI::App& app, std::string* gpu, const std::string& description);

// The numbers in --gpu, of one GPU at least; none where it is empty. Throws InvalidArgument for
// other text, and for 'all' on a machine without a GPU.
std::vector<int> ParseGpus(const std::string& gpu);
// The chip of each GPU, in their order. Throws DeviceError where one is not there; call it before
// logging that a GPU is used.
std::vector<std::string> DescribeGpus(const std::vector<int>& gpus);

// Nets built from now on run on ...
void UseCpu();
// ... the first of these GPUs, while a solver group uses all of them. Throws DeviceError where one
// is not there.
void UseGpus(const std::vector<int>& gpus);
// ... the first GPU of --gpu, or the CPU where it is empty. Throws DeviceError where it is not
// there.
void UseDevice(const std::string& gpu);

}  // namespace caffe::tools
