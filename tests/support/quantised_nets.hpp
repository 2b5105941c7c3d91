// Small nets whose layers can compute in 8 bits.
#pragma once

#include <algorithm>
#include <string>

#include "caffe/error.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::testing {

inline constexpr const char* kImage =
    "name: 'q' layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 "
    "dim: 8 dim: 7 } } } ";

inline std::string ConvLayer(const std::string& name, const std::string& bottom,
                             const std::string& more = "") {
  return StrCat("layer { name: '", name, "' type: 'Convolution' bottom: '", bottom, "' top: '",
                name, "' ", more,
                " convolution_param { num_output: 4 kernel_size: 3 pad: 1 "
                "weight_filler { type: 'msra' } bias_filler { type: 'gaussian' std: 0.1 } } } ");
}
// An in-place layer.
inline std::string LayerOn(const std::string& type, const std::string& blob) {
  return StrCat("layer { name: '", blob, "_", type, "' type: '", type, "' bottom: '", blob,
                "' top: '", blob, "' } ");
}
inline std::string PoolLayer(const std::string& name, const std::string& bottom,
                             const std::string& options) {
  return StrCat("layer { name: '", name, "' type: 'Pooling' bottom: '", bottom, "' top: '", name,
                "' pooling_param { ", options, " } } ");
}
inline std::string ProductLayer(const std::string& name, const std::string& bottom) {
  return StrCat("layer { name: '", name, "' type: 'InnerProduct' bottom: '", bottom, "' top: '",
                name,
                "' inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } } ");
}
inline std::string TwoBottoms(const std::string& type, const std::string& name,
                              const std::string& a, const std::string& b) {
  return StrCat("layer { name: '", name, "' type: '", type, "' bottom: '", a, "' bottom: '", b,
                "' top: '", name, "' } ");
}

// The product of two blobs' matrices.
inline std::string MatMulLayer(const std::string& name, const std::string& a, const std::string& b,
                               const std::string& options = "") {
  return StrCat("layer { name: '", name, "' type: 'MatMul' bottom: '", a, "' bottom: '", b,
                "' top: '", name, "' matmul_param { ", options, " } } ");
}
// Learned weights as a blob; zeros unless a test fills them.
inline std::string ParameterLayer(const std::string& name, const std::string& shape) {
  return StrCat("layer { name: '", name, "' type: 'Parameter' top: '", name,
                "' parameter_param { shape { ", shape, " } } } ");
}
// Attention between the rows of the images that three convolutions make, written as layers.
inline std::string AttentionLayers() {
  return ConvLayer("q", "x") + ConvLayer("k", "x") + ConvLayer("v", "x") +
         MatMulLayer("scores", "q", "k", "transpose_b: true") +
         "layer { name: 'p' type: 'Softmax' bottom: 'scores' top: 'p' softmax_param { axis: 3 } "
         "} " +
         MatMulLayer("y", "p", "v");
}

// Returns whether this processor supports int8 plans.
inline bool HasInt8() {
  const auto& candidates = KernelRegistry::Get().Candidates(DeviceKind::kCpu, typeid(ops::Conv));
  return std::ranges::any_of(candidates, [](const KernelCandidate& one) {
    return one.rank == KernelRank::kBest && one.Serves({DType::kInt8, DType::kFloat});
  });
}

}  // namespace caffe::testing
