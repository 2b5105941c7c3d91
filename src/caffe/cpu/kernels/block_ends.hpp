// Ends of convolutions of channels-last images: bias, epilogue, and conversion of sums to the type
// of the results. For kernels that compute blocks of kBlock channels.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/weight_panels.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/fused.hpp"
#include "caffe/ops/kernel.hpp"

#ifdef CAFFE_HAS_PIXEL_SUMS
namespace caffe::cpu {

// Stores a tile's sums as results, for `lanes` channels. `added` has the same offsets as y; null:
// nothing is added.
template <typename Sums, typename Added, typename Y, typename End>
CAFFE_WIDE_VECTORS void FinishTile(const FloatVector* sums, int64_t count, int64_t lanes,
                                   const End& of_block, const Added* added, int64_t step, Y* y) {
  const End end = of_block;  // a copy, which stays in registers
  const auto finish = [&](int64_t c, auto some, auto adds, FloatVector& value) CAFFE_FORCE_INLINE {
    FloatVector other = {};
    value = sums[c / kFloatLanes];
    Sums::ToFloats(value);
    if constexpr (adds) Load(added + c, some, other);
    end.template Finish<adds>(c, value, other);
  };
  const auto finish_all = [&](auto adds) CAFFE_FORCE_INLINE {
    for (int64_t pixel = 0; pixel < count; ++pixel, sums += kBlockVectors, y += step) {
      if (lanes == kBlock) {
        static_assert(kBlockVectors == 2);
        FloatVector first, second;
        finish(0, AllLanes{}, adds, first);
        finish(kFloatLanes, AllLanes{}, adds, second);
        StoreBlock(first, second, y);
      } else {
        ForVectors(lanes, [&](int64_t c, auto some) CAFFE_FORCE_INLINE {
          FloatVector value;
          finish(c, some, adds, value);
          StoreAtOnce(value, y + c, some);
        });
      }
      if constexpr (adds) added += step;
    }
  };
  added == nullptr ? finish_all(std::false_type{}) : finish_all(std::true_type{});
}

// Epilogue in float and bfloat16: adds another tensor, then applies a ReLU.
struct FloatEnd {
  bool has_relu = false;
  float slope = 0;

  template <bool kAdds>
  CAFFE_FORCE_INLINE void Finish(int64_t, FloatVector& value, const FloatVector& other) const {
    if constexpr (kAdds) value += other;
    if (has_relu) value = value > 0 ? value : value * slope + 0.0F;
  }
};

// Epilogue in 8 bits: the sums are converted to the scale of the other tensor, if there is one, and
// then to that of the result.
struct AddedNumberEnd {
  NumberEnd numbers;
  float rescaling = 1, least = 0, most = 0;

  template <bool kAdds>
  CAFFE_FORCE_INLINE void Finish(int64_t channel, FloatVector& value,
                                 const FloatVector& other) const {
    const FloatVector sums = value;
    numbers.Scale(channel, sums, value);
    if constexpr (kAdds) value += other;
    numbers.Limit(value);
    value *= rescaling;
    FloatVector limit;
    ReadUnit(&least, limit);
    value = value > limit ? value : limit;
    ReadUnit(&most, limit);
    value = value < limit ? value : limit;
  }
};

// Biases and epilogue of a block of channels, in float and bfloat16.
template <typename X>
struct FloatChannels {
  using Added = X;
  float begins[kBlock] = {};
  FloatEnd end;

  FloatChannels(const ops::Conv& op, const WeightPanels&, const KernelContext& ctx, int64_t channel,
                int64_t count)
      : end{ops::EndsInRelu(op.epilogue), op.epilogue.empty() ? 0 : op.epilogue.back().a} {
    if (ctx.has_input(ops::Conv::kBias))
      std::copy_n(ctx.input(ops::Conv::kBias).as<const float>() + channel, count, begins);
  }
};

// The entries after the addition of another tensor.
inline std::span<const ops::Pointwise> LimitOf(const ops::Epilogue& epilogue) {
  return std::span(epilogue).subspan(ops::AddedOperand(epilogue) >= 0 ? 1 : 0);
}

template <typename A>
struct NumberChannels {
  using Added = A;
  float begins[kBlock] = {};  // bits of integers
  float factors[kBlock] = {}, shifts[kBlock] = {};
  AddedNumberEnd end;

  NumberChannels(const ops::Conv& op, const WeightPanels& panels, const KernelContext& ctx,
                 int64_t channel, int64_t count) {
    const TensorView &x = ctx.input(ops::Conv::kX), &w = ctx.input(ops::Conv::kW),
                     &y = ctx.output(0);
    const int added = ops::AddedOperand(op.epilogue);
    const float unit = added < 0 ? ScaleOf(y) : ScaleOf(ctx.input(added));
    const float* const bias = BiasOf(ctx, ops::Conv::kBias);
    const float* const scales = panels.Scales(w) + channel;
    for (int64_t c = 0; c < count; ++c) {
      factors[c] = ChannelFactor(x.scale, scales[c], unit);
      shifts[c] = bias == nullptr ? 0 : bias[channel + c] / unit / factors[c];
    }
    if (panels.adds_128) std::memcpy(begins, panels.Begins(w) + channel, sizeof(begins));
    end.numbers = NumberEnd(LimitOf(op.epilogue), unit, RangeOf(DType::kFloat));
    end.numbers.factors = factors, end.numbers.shifts = shifts;
    end.rescaling = unit / ScaleOf(y);
    end.least = RangeOf(y.dtype).least, end.most = RangeOf(y.dtype).most;
  }
  NumberChannels(const NumberChannels&) = delete;  // the end points into it
};

}  // namespace caffe::cpu
#endif
