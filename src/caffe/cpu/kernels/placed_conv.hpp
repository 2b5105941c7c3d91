// Convolutions that write their results between the channels of others: the region
// Conv InsertChannels, which write-into-concats makes.
#pragma once

#include <span>
#include <string>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// A convolution, and the place of its result among the channels of a larger tensor.
struct PlacedConv {
  ops::Conv conv;
  bool is_part = false;
  int64_t offset = 0;
  int whole = -1;  // the input from which other channels are copied; -1: they are left alone

  explicit PlacedConv(const ops::Conv& op) : conv(op) {}
  explicit PlacedConv(const ops::Fused& region)
      : conv(region.Get<ops::Conv>(0)),
        is_part(true),
        offset(region.Get<ops::InsertChannels>(1).offset),
        whole(region.InputOf(1, ops::InsertChannels::kWhole)) {}

  void CopyWhole(const KernelContext& ctx) const {
    if (whole >= 0 && ctx.has_input(whole)) CopyBytes(ctx.input(whole), ctx.output(0));
  }
};

inline bool IsIntoWhole(const Op& op) {
  return op.As<ops::Fused>()->Is({ops::Conv::kName, ops::InsertChannels::kName});
}

// Traits of convolutions that write into a larger tensor.
inline KernelTraits IntoWholeTraits(KernelTraits traits) {
  traits.is_for = IsIntoWhole;
  traits.why_not = [](const Op& op, std::span<const OperandDesc> inputs, const Device&) {
    const auto& conv = op.As<ops::Fused>()->Get<ops::Conv>(0);
    const bool fuses =
        Is8Bit(inputs[0].dtype) ? FusesNumbers(conv.epilogue) : OneDnnFuses(conv.epilogue);
    return std::string(fuses ? "" : "no such epilogue");
  };
  return traits;
}

}  // namespace caffe::cpu
