// Problems of training steps for which engine_lab queries cuDNN.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/cudnn_graph.hpp"

namespace engine_lab {

using caffe::DType;
using namespace caffe::cuda;  // for the alias fe of cudnn_frontend

// A convolution on square images, or on cubes if there is a depth.
struct Geometry {
  int64_t n, c, k, size;
  int64_t kernel = 1, stride = 1, pad = 0, group = 1, depth = 0;
  DType type = DType::kBFloat16;

  int64_t out(int64_t in) const { return (in + 2 * pad - kernel) / stride + 1; }
  // The depth is that of the images; the kernel is as deep as it is wide.
  std::vector<int64_t> Spatial(int64_t width, int64_t deep) const {
    if (depth == 0) return {width, width};
    return {deep, width, width};
  }
  std::vector<int64_t> X() const { return Dims(n, c, Spatial(size, depth)); }
  std::vector<int64_t> Y() const { return Dims(n, k, Spatial(out(size), out(depth))); }
  std::vector<int64_t> W() const { return Dims(k, c / group, Spatial(kernel, kernel)); }

  static std::vector<int64_t> Dims(int64_t outer, int64_t channels, std::vector<int64_t> spatial) {
    spatial.insert(spatial.begin(), {outer, channels});
    return spatial;
  }
  template <typename Attributes>
  Attributes Window() const {
    const auto all = [&](int64_t value) { return std::vector<int64_t>(depth > 0 ? 3 : 2, value); };
    return Attributes().set_padding(all(pad)).set_stride(all(stride)).set_dilation(all(1));
  }
};

std::vector<int64_t> ChannelsLast(const std::vector<int64_t>& dims);

// Ids of tensors in the graphs.
enum Tensor : int64_t { kX, kW, kY, kAddend, kReluResult, kNormInput, kScale, kBias, kSum, kDot };

// A cuDNN graph with its inputs and outputs.
class Problem {
 public:
  Problem(CudaDevice& device, const Geometry& geometry)
      : graph_(device, geometry.type), geometry_(geometry) {}

  fe::graph::Graph& graph() { return graph_.graph(); }
  const Geometry& geometry() const { return geometry_; }
  const std::map<int64_t, TimedBuffer>& tensors() const { return tensors_; }

  CudnnTensor In(Tensor number, const std::vector<int64_t>& dims) {
    tensors_[number] = {BytesOf(dims, geometry_.type), geometry_.type};
    return graph_.Input(number, dims, ChannelsLast(dims), geometry_.type);
  }
  void Out(Tensor number, const CudnnTensor& tensor, const std::vector<int64_t>& dims, DType type) {
    tensors_[number] = {BytesOf(dims, type), type, true};
    graph_.Output(number, tensor, dims, ChannelsLast(dims), type);
  }
  CudnnTensor ChannelsIn(Tensor number, int64_t channels) {
    tensors_[number] = {BytesOf({channels}, DType::kFloat), DType::kFloat};
    return graph_.ChannelInput(number, channels);
  }
  CudnnTensor Step(const CudnnTensor& a, const CudnnTensor& b, fe::PointwiseMode_t mode) {
    return graph().pointwise(a, b, fe::graph::Pointwise_attributes().set_mode(mode));
  }
  // Adds the sum over each channel, in float.
  void SumOut(Tensor number, const CudnnTensor& tensor, int64_t channels) {
    const CudnnTensor sum =
        graph().reduction(tensor, fe::graph::Reduction_attributes()
                                      .set_mode(fe::ReductionMode_t::ADD)
                                      .set_compute_data_type(fe::DataType_t::FLOAT));
    tensors_[number] = {BytesOf({channels}, DType::kFloat), DType::kFloat, true};
    graph_.ChannelOutput(number, sum, channels);
  }

  double bytes() const {
    double bytes = 0;
    for (const auto& [number, buffer] : tensors_) bytes += static_cast<double>(buffer.bytes);
    return bytes;
  }
  double flops() const {
    return 2.0 * static_cast<double>(caffe::Shape(geometry_.Y()).count()) *
           static_cast<double>(caffe::Shape(geometry_.W()).count() / geometry_.k);
  }

 private:
  static size_t BytesOf(const std::vector<int64_t>& dims, DType type) {
    return static_cast<size_t>(caffe::Shape(dims).count()) * caffe::SizeOf(type);
  }

  CudnnGraph graph_;
  Geometry geometry_;
  std::map<int64_t, TimedBuffer> tensors_;
};

using Describe = std::function<void(Problem&)>;

struct Question {
  std::string name;
  Geometry geometry;
  Describe describe;
  Describe plain;  // the convolution alone; null if results are not compared with it
};

// Batch size 256, mostly steps of ResNet-50.
std::vector<Question> AllQuestions();

}  // namespace engine_lab
