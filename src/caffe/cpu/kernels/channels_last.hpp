// Shared code of kernels that only serve channels-last images, in float or in a 16-bit type with
// float arithmetic.
#pragma once

#include <algorithm>
#include <optional>

#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

inline KernelTraits ChannelsLastTraits() {
  return {.signatures = {{DType::kFloat, DType::kFloat},
                         {DType::kFloat16, DType::kFloat},
                         {DType::kBFloat16, DType::kFloat}},
          .layout = Layout::kChannelsLast};
}

// Calls fn(TypeTag<T>{}) with float or a 16-bit type.
template <typename Fn>
void VisitNarrow(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat16) return fn(TypeTag<float16>{});
  if (dtype == DType::kBFloat16) return fn(TypeTag<bfloat16>{});
  CAFFE_ASSERT(dtype == DType::kFloat, "no kernel for ", Name(dtype));
  fn(TypeTag<float>{});
}

// Requires channels-last images. Masks and scales, which have their stored types, must be float or
// bytes.
inline std::optional<Refusal> RefuseUnlessChannelsLast(const KernelRequest& request) {
  const DType data = request.outputs[0].dtype;
  const auto fits = [&](const OperandDesc& operand) {
    return !operand.present || operand.shape.num_axes() != 4 ||
           (operand.layout == Layout::kChannelsLast &&
            (operand.dtype == data || operand.dtype == DType::kFloat ||
             operand.dtype == DType::kUInt8));
  };
  const bool all = request.outputs[0].layout == Layout::kChannelsLast &&
                   std::ranges::all_of(request.inputs, fits) &&
                   std::ranges::all_of(request.outputs, fits);
  if (all) return std::nullopt;
  return Refusal{"only tensors with channels last"};
}

// Number of channels that a thread sums at a time.
inline constexpr int64_t kChannelBlock = 512;

// Calls fn(first channel, count) for blocks of at most kChannelBlock channels.
template <typename Fn>
void ForEachChannelBlock(int64_t channels, const Fn& fn) {
  for (int64_t first = 0; first < channels; first += kChannelBlock)
    fn(first, std::min(kChannelBlock, channels - first));
}

}  // namespace caffe::cpu
