// Shared by all products of 8-bit numbers: weights that are quantised when they are packed, and the
// epilogue of the sums.
#pragma once

#include "caffe/ops/conv.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cuda {

// Order of a product's float weights, and where their quantised numbers are stored: number i of
// channel k, which is weight i % taps of input channel i / taps, is stored at k * channel_step + (i
// % taps) * tap_step + i / taps * input_step.
struct WeightOrder {
  int64_t channels = 0, count = 0;  // output channels, and weights of each
  int64_t step = 1;                 // distance between the weights of a channel
  int64_t taps = 1, channel_step = 0, tap_step = 0, input_step = 1;

  // Reorders K, C / group, height, width to K, height, width, C / group.
  static WeightOrder OfConv(const Shape& w);
  // Reorders K, 1, height, width to height, width, K.
  static WeightOrder OfDepthwise(const Shape& w);
  static WeightOrder OfGemm(const ops::Gemm& op);
};

// 8-bit weights, followed by floats: the factors of the sums of each output channel, the units of
// the numbers of y (1 / the scale of y), and the scale of an added tensor.
class Int8Weights {
 public:
  Int8Weights(const WeightOrder& order, const KernelRequest& request,
              const ops::Epilogue& epilogue);

  // For Kernel::packed_weights, if weights may be packed.
  std::optional<PackedOperand> packed() const;
  // Workspace bytes that numbers() needs.
  size_t workspace_bytes() const { return is_packed_ ? 0 : bytes(); }
  // Returns the packed numbers, or quantises the weights into the workspace.
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

// True for an optional addition, then an optional ReLU, then an optional clip: the epilogues of the
// product kernels.
bool IsAddReluClip(const ops::Epilogue& epilogue);

// The traits that such kernels declare.
KernelTraits ProductTraits(std::optional<Layout> layout);

// Returns why a chip of this compute capability cannot multiply 8-bit numbers; empty if it can.
std::string WhyNoTensorCores(int major, int minor);

// Returns why these operands cannot be multiplied as 8-bit numbers; empty if they can.
std::optional<Refusal> RefuseNumbers(const KernelRequest& request);

// y = epilogue(sums * factors + bias (input 2)); the sums of `channels` are contiguous.
void FinishSums(const KernelContext& ctx, const ops::Epilogue& epilogue, const float* factors,
                int64_t channels, const float* sums);

}  // namespace caffe::cuda
