// Graphs of cuDNN 9: described op by op, planned for a device (one that is there, or one that is
// only described), run. The files that include this take half a minute to compile.
#pragma once

#include <cudnn_frontend.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "caffe/cuda/cuda_device.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

namespace fe = cudnn_frontend;

fe::DataType_t CudnnType(DType type);

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;
// Where the tensors of a graph are, by the number that they were given.
using CudnnPointers = std::unordered_map<int64_t, void*>;

// Steps in elements of a tensor's axes, in the order of its shape.
std::vector<int64_t> StridesOf(const TensorDesc& tensor);

// What the user asks of the choice among engines.
struct EngineChoice {
  bool allows_tensor_cores = true;
  bool is_deterministic = false;
  bool is_timed = true;  // false: cuDNN's first guess
  int engine = -1;       // the number of one; -1: any
  // What a timing holds for, all of the above included.
  std::string problem;
};

// Made once per op, then run any number of times.
class CudnnGraph {
 public:
  // `type`: that of all tensors that have none of their own.
  CudnnGraph(CudaDevice& device, DType type);

  fe::graph::Graph& graph() { return *graph_; }
  CudnnTensor Input(int64_t number, std::vector<int64_t> shape, std::vector<int64_t> strides,
                    DType type);
  CudnnTensor Input(int64_t number, const TensorDesc& tensor) {
    return Input(number, tensor.shape.dims(), StridesOf(tensor), tensor.dtype);
  }
  void Output(int64_t number, const CudnnTensor& tensor, std::vector<int64_t> shape,
              std::vector<int64_t> strides, DType type);
  void Output(int64_t number, const CudnnTensor& tensor, const TensorDesc& desc) {
    Output(number, tensor, desc.shape.dims(), StridesOf(desc), desc.dtype);
  }

  // Chooses an engine. Returns why there is none; empty when there is one.
  std::string Plan(const EngineChoice& choice);

  // After Plan.
  size_t workspace_bytes() const { return workspace_bytes_; }
  // Names of the engines that may serve, the chosen one first.
  const std::vector<std::string>& engines() const { return engines_; }
  void Run(CudnnPointers pointers, void* workspace, cudaStream_t stream) const;

 private:
  struct Candidate {
    int64_t index = 0;
    std::string name;
    size_t workspace_bytes = 0;
  };
  std::vector<Candidate> Candidates(const EngineChoice& choice) const;
  std::vector<double> Times(const std::vector<Candidate>& candidates) const;

  CudaDevice& device_;
  cudnnHandle_t handle_ = nullptr;  // null for a described device
  std::shared_ptr<fe::graph::Graph> graph_;
  std::unordered_map<int64_t, size_t> tensor_bytes_;
  std::vector<std::string> engines_;
  int64_t index_ = 0;
  size_t workspace_bytes_ = 0;
};

}  // namespace caffe::cuda
