// Graphs of cuDNN 9: described op by op, planned for a device (one that is there, or one that is
// only described), run. The files that include this take half a minute to compile.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "caffe/cuda/cuda_device.hpp"
#include "caffe/cuda/cudnn_problem.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

fe::DataType_t CudnnType(DType type);

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Bytes of which a tensor's address is a multiple if nothing else is said: engines read and write
// packs of as many. All tensors have that begin where memory was allocated.
inline constexpr int64_t kTensorAlignment = 16;

// Steps in elements of a tensor's axes, in the order of its shape.
std::vector<int64_t> StridesOf(const TensorDesc& tensor);

// Made once per op, then run any number of times.
class CudnnGraph {
 public:
  // `type`: that of all tensors that have none of their own.
  CudnnGraph(CudaDevice& device, DType type);

  fe::graph::Graph& graph() { return *description_.graph; }
  CudnnTensor Input(int64_t number, std::vector<int64_t> shape, std::vector<int64_t> strides,
                    DType type);
  CudnnTensor Input(int64_t number, const TensorDesc& tensor) {
    return Input(number, tensor.shape.dims(), StridesOf(tensor), tensor.dtype);
  }
  void Output(int64_t number, const CudnnTensor& tensor, std::vector<int64_t> shape,
              std::vector<int64_t> strides, DType type, int64_t alignment = kTensorAlignment);
  void Output(int64_t number, const CudnnTensor& tensor, const TensorDesc& desc) {
    Output(number, tensor, desc.shape.dims(), StridesOf(desc), desc.dtype);
  }

  // A float number of each channel.
  CudnnTensor ChannelInput(int64_t number, int64_t channels) {
    return Input(number, {1, channels, 1, 1}, {channels, 1, channels, channels}, DType::kFloat);
  }
  void ChannelOutput(int64_t number, const CudnnTensor& tensor, int64_t channels) {
    Output(number, tensor, {1, channels, 1, 1}, {channels, 1, channels, channels}, DType::kFloat);
  }

  // Chooses an engine. Returns why there is none; empty when there is one.
  std::string Plan(const EngineChoice& choice);

  // After Plan, unless it was ahead.
  size_t workspace_bytes() const { return problem_->workspace_bytes(); }
  // Names of the engines that may serve, the chosen one first.
  std::vector<std::string> engines() const { return problem_->engines(); }
  void Run(CudnnPointers pointers, void* workspace, cudaStream_t stream) const;

 private:
  CudaDevice& device_;
  CudnnDescription description_;
  std::shared_ptr<CudnnProblem> problem_;
};

}  // namespace caffe::cuda
