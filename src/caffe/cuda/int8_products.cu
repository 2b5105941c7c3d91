#include "caffe/cuda/divisor.cuh"
#include "caffe/cuda/groups.cuh"
#include "caffe/cuda/int8.cuh"
#include "caffe/cuda/int8_products.hpp"
#include "caffe/cuda/vendor_types.hpp"

namespace caffe::cuda {
namespace {

// Quantises the weights of a channel, the largest to 127.
struct QuantizeChannel {
  Rows rows;
  WeightOrder order;
  const float* w;
  int8_t* numbers;
  float* factors;
  float x_scale, per_unit, added_scale;

  template <typename Group>
  __device__ void operator()(int64_t channel, const Group& group) const {
    const int64_t first = rows.Offset(channel);
    float largest = 0;
    for (int64_t i = group.rank(); i < rows.length; i += group.size())
      largest = Largest{}(largest, std::abs(w[first + i * rows.step]));
    const float scale = Largest{}(group.Reduce(Largest{}, largest) / 127, ops::kLeastScale);
    for (int64_t i = group.rank(); i < rows.length; i += group.size()) {
      int64_t tap;
      const int64_t input = Divide(i, order.taps, &tap);
      numbers[channel * order.channel_step + tap * order.tap_step + input * order.input_step] =
          ops::ToNumber<int8_t>(w[first + i * rows.step] / scale);
    }
    if (group.rank() > 0) return;
    factors[channel] = ops::ChannelFactor(x_scale, scale, 1);
    if (channel > 0) return;
    factors[rows.count] = per_unit;
    factors[rows.count + 1] = added_scale;
  }
};

template <typename T, int N>
struct FinishPack {
  Finish finish;
  Divisor packs;  // in a row
  const float* sums;
  T* y;

  __device__ void operator()(int64_t pack) const {
    const Pack<float, N> read = PackAt<float, N>(sums, pack);
    uint32_t in_row;
    packs.Divide(static_cast<uint32_t>(pack), &in_row);
    finish.Store(int64_t{in_row} * N, pack, read.values, y);
  }
};

}  // namespace

WeightOrder WeightOrder::OfConv(const Shape& w) {
  const int64_t count = w.count(1), taps = w.count(2);
  return {w[0], count, 1, taps, count, w[1], 1};
}

WeightOrder WeightOrder::OfDepthwise(const Shape& w) {
  return {w[0], w.count(1), 1, w.count(2), 1, w[0], 0};
}

WeightOrder WeightOrder::OfGemm(const ops::Gemm& op) {
  return {op.columns, op.inner, op.transpose_b ? 1 : op.columns, 1, op.inner, 0, 1};
}

Int8Weights::Int8Weights(const WeightOrder& order, const KernelRequest& request,
                         const ops::Epilogue& epilogue)
    : order_(order),
      x_scale_(request.inputs[0].scale),
      per_unit_(1 / ops::ScaleOf(request.outputs[0])),
      is_packed_(request.inputs[1].may_be_packed) {
  const int added = ops::AddedOperand(epilogue);
  if (added >= 0) added_scale_ = ops::ScaleOf(request.inputs[added]);
}

size_t Int8Weights::factors_offset() const {
  return AlignWorkspace(static_cast<size_t>(order_.channels * order_.count));
}

size_t Int8Weights::bytes() const {
  return AlignWorkspace(factors_offset() +
                        (static_cast<size_t>(order_.channels) + 2) * sizeof(float));
}

std::optional<PackedOperand> Int8Weights::packed() const {
  if (!is_packed_) return std::nullopt;
  const auto convert = [weights = *this](const KernelContext& ctx) {
    weights.Pack(ctx, ctx.input(0).as<const float>(), ctx.output(0).as<int8_t>());
  };
  return PackedOperand{1, bytes(), convert};
}

int8_t* Int8Weights::numbers(const KernelContext& ctx, void* workspace) const {
  if (is_packed_) return ctx.input(1).as<int8_t>();
  auto* const numbers = static_cast<int8_t*>(workspace);
  Pack(ctx, ctx.input(1).as<const float>(), numbers);
  return numbers;
}

float* Int8Weights::factors(int8_t* numbers) const {
  return reinterpret_cast<float*>(numbers + factors_offset());
}

void Int8Weights::Pack(const KernelContext& ctx, const float* weights, int8_t* numbers) const {
  const Rows rows{order_.channels, order_.count, order_.step};
  ForRows(ctx, rows,
          QuantizeChannel{rows, order_, weights, numbers, factors(numbers), x_scale_, per_unit_,
                          added_scale_});
}

bool IsAddReluClip(const ops::Epilogue& epilogue) {
  using Kind = ops::Pointwise::Kind;
  size_t i = 0;
  for (const Kind kind : {Kind::kAdd, Kind::kRelu, Kind::kClip}) {
    if (i < epilogue.size() && epilogue[i].kind == kind) ++i;
  }
  return i == epilogue.size();
}

KernelTraits ProductTraits(std::optional<Layout> layout) {
  KernelTraits traits = ops::Int8Traits(IsAddReluClip);
  traits.layout = layout;
  traits.takes_unsigned = false;
  return traits;
}

std::string WhyNoTensorCores(int major, int minor) {
  if (major * 10 + minor >= 75) return "";
  return StrCat("this GPU has compute capability ", major, ".", minor,
                ", and tensor cores for 8-bit numbers came with 7.5: run the net in FP32 or FP16");
}

std::optional<Refusal> RefuseNumbers(const KernelRequest& request) {
  if (request.inputs[0].dtype != DType::kInt8)
    return Refusal{
        StrCat("only signed 8-bit data, which the GPU multiplies with weights of the "
               "same type, not ",
               Name(request.inputs[0].dtype))};
  if (request.inputs[1].dtype != DType::kFloat) return Refusal{"only float weights"};
  const bool has_bias = request.inputs.size() > 2 && request.inputs[2].present;
  if (has_bias && request.inputs[2].dtype != DType::kFloat) return Refusal{"only a float bias"};
  if (request.outputs[0].count() == 0 || request.inputs[1].count() == 0)
    return Refusal{"an empty batch"};
  if (request.outputs[0].count() > kMostDividend)
    return Refusal{StrCat("at most ", kMostDividend, " elements")};
  return std::nullopt;
}

void FinishSums(const KernelContext& ctx, const ops::Epilogue& epilogue, const float* factors,
                int64_t channels, const float* sums) {
  const TensorView& y = ctx.output(0);
  const Finish finish(ctx, epilogue, factors);
  VisitNumber(y.dtype, [&]<typename T>(TypeTag<T>) {
    VisitChannelPacks(channels, [&]<int N>(std::integral_constant<int, N>) {
      ForEach(ctx, y.count() / N, FinishPack<T, N>{finish, Divisor(channels / N), sums, y.as<T>()});
    });
  });
}

}  // namespace caffe::cuda
