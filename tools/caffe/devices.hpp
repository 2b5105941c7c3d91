// --gpu: selects the devices that a command runs on.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace caffe::tools {

void AddGpu(CLI::App& app, std::string* gpu, const std::string& description);

// Parses --gpu into device numbers; none if it is empty, otherwise at least one. Throws
// InvalidArgument for malformed text, and for 'all' on a machine without a GPU.
std::vector<int> ParseGpus(const std::string& gpu);
// Describes the chip of each GPU, in order. Throws DeviceError if a GPU does not exist; call this
// before logging that a GPU is used.
std::vector<std::string> DescribeGpus(const std::vector<int>& gpus);

// Nets built after this call run on the CPU.
void UseCpu();
// Nets built after this call run on the first of these GPUs; a solver group uses all of them.
// Throws DeviceError if one does not exist.
void UseGpus(const std::vector<int>& gpus);
// Nets built after this call run on the first GPU of --gpu, or on the CPU if it is empty. Throws
// DeviceError if the GPU does not exist.
void UseDevice(const std::string& gpu);

}  // namespace caffe::tools
