// What products of 8-bit numbers need around them, whoever multiplies: weights that are quantised
// when they are packed, and what becomes of the sums.
#pragma once

#include "caffe/ops/conv.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// How the float weights of a product lie, and where their numbers go: number i of channel k, which
// is weight i % taps of input channel i / taps, to k * channel_step + (i % taps) * tap_step + i /
// taps * input_step.
struct WeightOrder {
  int64_t channels = 0, count = 0;  // output channels, and weights of each
  int64_t step = 1;                 // between the weights of a channel
  int64_t taps = 1, channel_step = 0, tap_step = 0, input_step = 1;

  // K, C / group, height, width becomes K, height, width, C / group.
  static WeightOrder OfConv(const Shape& w);
  // K, 1, height, width becomes height, width, K.
  static WeightOrder OfDepthwise(const Shape& w);
  static WeightOrder OfGemm(const ops::Gemm& op);
};

// 8-bit weights, behind them float factors: what the sums of each output channel are multiplied by,
// then what the numbers of y are in units of (1 / the scale of y), and the scale of an added
// tensor.
class Int8Weights {
 public:
  Int8Weights(const WeightOrder& order, const KernelRequest& request,
              const ops::Epilogue& epilogue);

  // For Kernel::packed_weights of a kernel that may pack.
  std::optional<PackedOperand> packed() const;
  // Bytes that numbers() needs of the workspace.
  size_t workspace_bytes() const { return is_packed_ ? 0 : bytes(); }
  // The numbers: packed ones, or made in the workspace.
  int8_t* numbers(const KernelContext& ctx, void* workspace) const;
  float* factors(int8_t* numbers) const;
  float* per_unit(int8_t* numbers) const { return factors(numbers) + order_.channels; }
  float* added_scale(int8_t* numbers) const { return per_unit(numbers) + 1; }

 private:
  size_t factors_offset() const;
  size_t bytes() const;
  void Pack(const KernelContext& ctx, const float* weights, int8_t* numbers) const;

  WeightOrder order_;
  float x_scale_ = 1, per_unit_ = 1, added_scale_ = 1;
  bool is_packed_ = false;
};

// What kernels of products apply: a sum, then a ReLU, then limits, each of them or not.
bool IsAddReluClip(const ops::Epilogue& epilogue);

// What such kernels declare.
KernelTraits ProductTraits(std::optional<Layout> layout);

// Why a chip of this compute capability multiplies no 8-bit numbers; empty where it does.
std::string WhyNoTensorCores(int major, int minor);

// Why there are no products of 8-bit numbers for these operands; nothing where there are.
std::optional<Refusal> RefuseNumbers(const KernelRequest& request);

// y = the epilogue of sums * factors + bias (input 2), with sums of `channels` next to each other.
void FinishSums(const KernelContext& ctx, const ops::Epilogue& epilogue, const float* factors,
                int64_t channels, const float* sums);

}  // namespace caffe::cuda
