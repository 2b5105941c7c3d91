// Graphs of cuDNN 9: built op by op, planned for a device (present or only described), then run.
// Files that include this header take half a minute to compile.
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

// The properties of a chip in cuDNN's own serialised form, so that its planner decides as it would
// on that chip. Versions before 9.28 ignore memoryBusWidth, which later ones require.
std::string SerializedForCudnn(const ChipProperties& chip);

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;

// Default alignment of tensors in bytes: engines read and write packs of this size. Every tensor at
// the start of an allocation has it.
inline constexpr int64_t kTensorAlignment = 16;

// Strides of a tensor in elements, in the order of its shape.
std::vector<int64_t> StridesOf(const TensorDesc& tensor);

// Built once per op, then run any number of times.
class CudnnGraph {
 public:
  // `type`: default type of the tensors.
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

  // A tensor with one float per channel.
  CudnnTensor ChannelInput(int64_t number, int64_t channels) {
    return Input(number, {1, channels, 1, 1}, {channels, 1, channels, channels}, DType::kFloat);
  }
  void ChannelOutput(int64_t number, const CudnnTensor& tensor, int64_t channels) {
    Output(number, tensor, {1, channels, 1, 1}, {channels, 1, channels, channels}, DType::kFloat);
  }

  // Chooses an engine. Returns the reason if there is none, otherwise an empty text.
  std::string Plan(const EngineChoice& choice);

  // Only after Plan() without EngineChoice::is_ahead.
  size_t workspace_bytes() const { return problem_->workspace_bytes(); }
  // Names of the candidate engines, the chosen one first.
  std::vector<std::string> engines() const { return problem_->engines(); }
  void Run(CudnnPointers pointers, void* workspace, cudaStream_t stream) const;

 private:
  CudaDevice& device_;
  CudnnDescription description_;
  std::shared_ptr<CudnnProblem> problem_;
};

}  // namespace caffe::cuda
