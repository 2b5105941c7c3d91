// Convolutions and matrix products of 8-bit data by oneDNN. Weights are quantized when they are
// packed, with a scale for each output channel. oneDNN computes from the sums
//
//   number of y = ((sum + bias) * factor of the channel [+ residual]) [* rescaling], clipped
//
// The factors, and the biases in units of the sums, are computed in each run, because the scales of
// the weights are known only then.
#include <cstring>

#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe::cpu {
namespace {

using Kind = ops::Pointwise::Kind;

// Layout of a product's weights in the net: numbers of one output channel are `step` apart,
// channels are `row` apart.
struct WeightRows {
  int64_t channels = 0, count = 0, row = 0, step = 1;
};

// 8-bit weights in oneDNN's preferred format, followed by the scales of the channels.
class Int8Weights {
 public:
  Int8Weights(const WeightRows& rows, const dnnl::memory::desc& plain,
              const dnnl::memory::desc& preferred)
      : rows_(rows),
        scales_offset_((preferred.get_size() + 63) / 64 * 64),
        plain_bytes_((plain.get_size() + 63) / 64 * 64),
        plain_(plain),
        preferred_(preferred),
        reorder_(plain, preferred, /*accumulates=*/false) {}

  size_t bytes() const {
    return scales_offset_ + static_cast<size_t>(rows_.channels) * sizeof(float);
  }
  size_t workspace_bytes() const { return plain_bytes_ + reorder_.scratchpad_bytes(); }

  void Pack(const float* weights, char* packed, char* workspace) {
    auto* const numbers = reinterpret_cast<int8_t*>(workspace);
    Quantize(weights, rows_.channels, numbers, ScalesOf(packed));
    reorder_.Run(numbers, packed, workspace + plain_bytes_);
  }
  // The same for some channels at a time. If oneDNN's format does not keep channels together, or
  // ends with sums for signed data, the numbers of all are rearranged after the last one.
  std::optional<RowPacking> ByRows() const {
    if (rows_.step != 1 || rows_.row != rows_.count) return std::nullopt;
    const auto reorder = PackOneDnnRows(plain_, preferred_, 0);
    if (!reorder) return ByRowsThenAll();
    const int64_t unit = reorder->unit, of_unit = unit * rows_.count;
    const size_t numbers_bytes = (static_cast<size_t>(of_unit) + 63) / 64 * 64;
    RowPacking packing{.unit = unit, .workspace_bytes = numbers_bytes + reorder->workspace_bytes};
    packing.pack = [weights = *this, reorder, unit, of_unit, numbers_bytes](
                       const void* rows, int64_t first, int64_t count, void* packed,
                       void* workspace) {
      const auto* from = static_cast<const float*>(rows);
      char* const to = static_cast<char*>(packed);
      char* const space = static_cast<char*>(workspace);
      for (int64_t k = first; k < first + count; k += unit, from += of_unit) {
        weights.Quantize(from, unit, reinterpret_cast<int8_t*>(space), weights.ScalesOf(to) + k);
        reorder->pack(space, k, unit, packed, space + numbers_bytes);
      }
    };
    return packing;
  }
  const float* Scales(const char* packed) const {
    return reinterpret_cast<const float*>(packed + scales_offset_);
  }

 private:
  RowPacking ByRowsThenAll() const {
    RowPacking packing{.workspace_bytes = workspace_bytes()};
    packing.pack = [weights = std::make_shared<Int8Weights>(*this)](const void* rows, int64_t first,
                                                                    int64_t count, void* packed,
                                                                    void* workspace) {
      char* const to = static_cast<char*>(packed);
      auto* const numbers = static_cast<int8_t*>(workspace);
      const WeightRows& all = weights->rows_;
      weights->Quantize(static_cast<const float*>(rows), count, numbers + first * all.count,
                        weights->ScalesOf(to) + first);
      if (first + count < all.channels) return;
      weights->reorder_.Run(numbers, packed, static_cast<char*>(workspace) + weights->plain_bytes_);
    };
    return packing;
  }
  float* ScalesOf(char* packed) const { return reinterpret_cast<float*>(packed + scales_offset_); }
  void Quantize(const float* weights, int64_t channels, int8_t* numbers, float* scales) const {
    ParallelFor(channels, kPointwiseGrain / rows_.count + 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        scales[k] = QuantizeRow(weights + k * rows_.row, rows_.count, rows_.step,
                                numbers + k * rows_.count);
      }
    });
  }

  WeightRows rows_;
  size_t scales_offset_ = 0, plain_bytes_ = 0;
  dnnl::memory::desc plain_, preferred_;
  ReorderStep reorder_;
};

// The epilogue of a product as oneDNN post-ops.
class Int8PostOps {
 public:
  Int8PostOps(const ops::Epilogue& epilogue, std::span<const OperandDesc> inputs,
              const OperandDesc& y)
      : unit_(ScaleOf(y)) {
    const int residual = ops::AddedOperand(epilogue);
    dnnl::memory::dims per_channel(y.shape.num_axes(), 1);
    per_channel[1] = y.shape[1];
    Multiply(per_channel);
    if (residual >= 0) Add(inputs[residual], y, residual);
    for (const ops::Pointwise& entry : epilogue) Append(entry);
    if (unit_ != ScaleOf(y))
      AppendEltwise(dnnl::algorithm::eltwise_linear, unit_ / ScaleOf(y), 0, &ops_);
  }

  static dnnl::primitive_attr None() {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }
  dnnl::primitive_attr Attributes() const {
    dnnl::primitive_attr attributes = None();
    attributes.set_post_ops(ops_);
    return attributes;
  }
  // Unit of the channels' factors.
  float unit() const { return unit_; }
  // Index of the input that is added; -1: none.
  int residual() const { return residual_; }
  // Declares the factors and the residual as the primitive's next operands.
  void AddOperands(OneDnnPrimitive* primitive) const {
    primitive->AddOperand(Argument(0), factors_);
    if (residual_ >= 0) primitive->AddOperand(Argument(1), residual_desc_);
  }

 private:
  static int Argument(int post_op) {
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(post_op) | DNNL_ARG_SRC_1;
  }
  void Multiply(const dnnl::memory::dims& per_channel) {
    dnnl::memory::dims strides(per_channel.size(), 1);
    strides[0] = per_channel[1];
    factors_ = dnnl::memory::desc(per_channel, dnnl::memory::data_type::f32, strides);
    ops_.append_binary(dnnl::algorithm::binary_mul, factors_);
  }
  // The residual is added unscaled, so the sums must have its unit. It has y's elements, but a
  // product's y is a matrix here, whatever its axes in the net.
  void Add(const OperandDesc& residual, const OperandDesc& y, int operand) {
    residual_ = operand;
    residual_desc_ = OneDnnDesc(y, OneDnnType(residual.dtype));
    unit_ = ScaleOf(residual);
    ops_.append_binary(dnnl::algorithm::binary_add, residual_desc_);
  }
  void Append(const ops::Pointwise& entry) {
    if (entry.kind == Kind::kRelu) AppendEltwise(dnnl::algorithm::eltwise_relu, entry.a, 0, &ops_);
    if (entry.kind == Kind::kClip)
      AppendEltwise(dnnl::algorithm::eltwise_clip, entry.a / unit_, entry.b / unit_, &ops_);
  }

  dnnl::post_ops ops_;
  float unit_ = 1;
  dnnl::memory::desc factors_, residual_desc_;
  int residual_ = -1;
};

// An epilogue that is applied in a separate step after oneDNN's.
struct Apart {
  ops::Epilogue epilogue;
  size_t sums_offset = 0;
};

// y = the epilogue of sums * factor + shift, in memory order.
void ApplyToSums(const ops::Epilogue& epilogue, const KernelContext& ctx, const int32_t* sums,
                 const float* factors, const float* shifts) {
  const TensorView& y = ctx.output(0);
  const int64_t channels = y.shape[1];
  const int64_t inner = y.layout == Layout::kPlain ? y.shape.count(2) : 1;
  ParallelFor(y.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t c = i / inner % channels;
      const float value = static_cast<float>(sums[i]) * factors[c] + shifts[c];
      StoreNumber(y, i, ApplyEpilogue(ctx, epilogue, c, i, value));
    }
  });
}

// A product ready to run. Inputs 0 to 2 are x, w and bias for both ops.
struct Int8Product {
  enum { kX, kW, kBias };
  OneDnnPrimitive primitive;
  std::shared_ptr<Int8Weights> weights;
  int residual = -1;
  int64_t channels = 0;
  float x_scale = 1, unit = 1;
  bool has_bias = false, is_packed = false;
  std::optional<Apart> apart;
  size_t factors_offset = 0, bias_offset = 0, scratchpad_offset = 0;
  size_t weights_offset = 0, packing_offset = 0;  // if the plan does not pack

  void Run(const KernelContext& ctx) {
    char* const workspace = static_cast<char*>(ctx.workspace);
    char* const packed = Packed(ctx);
    auto* const factors = reinterpret_cast<float*>(workspace + factors_offset);
    auto* const shifts = reinterpret_cast<float*>(workspace + bias_offset);
    SetFactors(weights->Scales(packed), has_bias ? ctx.input(kBias).as<const float>() : nullptr,
               factors, shifts);
    primitive.SetOperand(0, ctx.input(kX).data);
    primitive.SetOperand(1, packed);
    primitive.SetOperand(2, apart ? workspace + apart->sums_offset : ctx.output(0).data);
    primitive.SetOperand(3, workspace + scratchpad_offset);
    if (apart) {
      primitive.Run();
      const auto* sums = reinterpret_cast<const int32_t*>(workspace + apart->sums_offset);
      return ApplyToSums(apart->epilogue, ctx, sums, factors, shifts);
    }
    primitive.SetOperand(4, workspace + bias_offset);
    primitive.SetOperand(5, workspace + factors_offset);
    if (residual >= 0) primitive.SetOperand(6, ctx.input(residual).data);
    primitive.Run();
  }

 private:
  char* Packed(const KernelContext& ctx) {
    if (is_packed) return ctx.input(kW).as<char>();
    char* const workspace = static_cast<char*>(ctx.workspace);
    weights->Pack(ctx.input(kW).as<const float>(), workspace + weights_offset,
                  workspace + packing_offset);
    return workspace + weights_offset;
  }
  void SetFactors(const float* scales, const float* bias, float* factors, float* shifts) const {
    for (int64_t k = 0; k < channels; ++k) {
      factors[k] = ChannelFactor(x_scale, scales[k], unit);
      shifts[k] = bias == nullptr ? 0 : apart ? bias[k] : bias[k] / unit / factors[k];
    }
  }
};

template <typename Primitive>
Kernel MakeProduct(const typename Primitive::primitive_desc& description, const WeightRows& rows,
                   const dnnl::memory::desc& plain_weights, const Int8PostOps& post,
                   const KernelRequest& request, std::optional<Apart> apart = {}) {
  const OperandDesc& w = request.inputs[Int8Product::kW];
  const size_t channel_bytes = static_cast<size_t>(rows.channels) * sizeof(float);
  WorkspaceLayout layout;
  auto product = std::make_shared<Int8Product>();
  product->weights = std::make_shared<Int8Weights>(rows, plain_weights, description.weights_desc());
  product->residual = apart ? -1 : post.residual();
  product->channels = rows.channels;
  product->x_scale = request.inputs[Int8Product::kX].scale;
  product->unit = apart ? 1 : post.unit();
  product->has_bias =
      request.inputs.size() > Int8Product::kBias && request.inputs[Int8Product::kBias].present;
  product->is_packed = w.may_be_packed;
  product->factors_offset = layout.Add(channel_bytes);
  product->bias_offset = layout.Add(channel_bytes);
  product->scratchpad_offset = layout.Add(description.scratchpad_desc().get_size());
  if (apart) apart->sums_offset = layout.Add(description.dst_desc().get_size());
  product->apart = std::move(apart);
  if (!product->is_packed) {
    product->weights_offset = layout.Add(product->weights->bytes());
    product->packing_offset = layout.Add(product->weights->workspace_bytes());
  }
  product->primitive = OneDnnPrimitive(Primitive(description));
  product->primitive.AddOperand(DNNL_ARG_SRC, description.src_desc());
  product->primitive.AddOperand(DNNL_ARG_WEIGHTS, description.weights_desc());
  product->primitive.AddOperand(DNNL_ARG_DST, description.dst_desc());
  product->primitive.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
  if (!product->apart) {
    product->primitive.AddOperand(DNNL_ARG_BIAS, description.bias_desc());
    post.AddOperands(&product->primitive);
  }
  Kernel kernel{"", [product](const KernelContext& ctx) { product->Run(ctx); }, layout.bytes()};
  if (product->is_packed) {
    const auto pack = [weights = product->weights](const KernelContext& ctx) {
      weights->Pack(ctx.input(0).as<const float>(), ctx.output(0).as<char>(),
                    static_cast<char*>(ctx.workspace));
    };
    kernel.packed_weights = PackedOperand{Int8Product::kW, product->weights->bytes(), pack,
                                          product->weights->workspace_bytes()};
    // Those of convolutions are not worth more calls.
    constexpr bool kIsGemm = std::is_same_v<Primitive, dnnl::inner_product_forward>;
    if (kIsGemm && w.shape.num_axes() > 0 && w.shape[0] == rows.channels) {
      kernel.packed_weights->rows = product->weights->ByRows();
      kernel.packed_weights->order =
          StrCat(OneDnnOrder(description.weights_desc()), ", then scales, steps of ", rows.step);
    }
  }
  return kernel;
}

std::optional<Refusal> RefuseOperands(const KernelRequest& request) {
  if (!OneDnnMultiplies8Bits())
    return Refusal{"this processor has no instructions for products of 8-bit numbers"};
  if (!Is8Bit(request.inputs[Int8Product::kX].dtype)) return Refusal{"only 8-bit data"};
  if (request.inputs[Int8Product::kW].dtype != DType::kFloat) return Refusal{"only float weights"};
  if (request.outputs[0].count() == 0 || request.inputs[Int8Product::kW].count() == 0)
    return Refusal{"an empty batch"};
  return std::nullopt;
}

// Defects of oneDNN 2.6, as in conv_onednn.cpp: it reads operands of post-ops at wrong places, or
// ignores them if a window is empty. Also, if it has only its reference kernel for a factor per
// channel, it still has a fast kernel for the sums alone.
bool AppliesBadly(const ops::Conv& op, const KernelRequest& request, const std::string& name) {
  return name.find("gemm") != name.npos || name.starts_with("ref") ||
         (name.starts_with("brg") &&
          HasEmptyWindow(op.geometry, request.inputs[0].shape, request.outputs[0].shape));
}

KernelOrRefusal MakeConvInt8(const ops::Conv& op, const KernelRequest& request) {
  if (const auto refusal = RefuseOperands(request)) return *refusal;
  if (op.geometry.spatial_axes() > 3) return Refusal{"more than 3 spatial axes"};
  const OperandDesc &x = request.inputs[ops::Conv::kX], &y = request.outputs[0];
  if (const auto refusal = RefuseLarge(op.geometry, x.shape)) return *refusal;
  if (const auto refusal = RefuseWindows(op.geometry, x.dtype)) return *refusal;
  TensorDesc w = request.inputs[ops::Conv::kW];
  const int64_t count = w.shape.count(1);
  w.dtype = DType::kInt8;
  try {
    const ConvDescs d = DescribeConv(op.geometry, x, w, y, /*has_bias=*/true);
    const Int8PostOps post(op.epilogue, request.inputs, y);
    const auto description = DescribeOneDnn<dnnl::convolution_forward>(
        post.Attributes(), dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
        d.x, d.any_weights, d.bias, d.y, d.strides, d.dilations, d.pad_front, d.pad_back);
    const WeightRows rows{.channels = y.shape[1], .count = count, .row = count};
    if (AppliesBadly(op, request, description.impl_info_str())) {
      const auto of_sums = DescribeOneDnn<dnnl::convolution_forward>(
          Int8PostOps::None(), dnnl::prop_kind::forward_inference,
          dnnl::algorithm::convolution_direct, d.x, d.any_weights,
          OneDnnDesc(y, dnnl::memory::data_type::s32), d.strides, d.dilations, d.pad_front,
          d.pad_back);
      return MakeProduct<dnnl::convolution_forward>(of_sums, rows, d.weights, post, request,
                                                    Apart{op.epilogue});
    }
    return MakeProduct<dnnl::convolution_forward>(description, rows, d.weights, post, request);
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelOrRefusal MakeGemmInt8(const ops::Gemm& op, const KernelRequest& request) {
  using dnnl::memory;
  if (const auto refusal = RefuseOperands(request)) return *refusal;
  if (op.transpose_a) return Refusal{"only data whose rows are items"};
  OperandDesc y = request.outputs[0];
  y.shape = Shape{op.rows, op.columns};
  const Shape x{op.rows, op.inner}, w{op.columns, op.inner};
  try {
    const Int8PostOps post(op.epilogue, request.inputs, y);
    const auto description = DescribeOneDnn<dnnl::inner_product_forward>(
        post.Attributes(), dnnl::prop_kind::forward_inference,
        OneDnnDesc({x, request.inputs[ops::Gemm::kA].dtype}),
        memory::desc(w.dims(), memory::data_type::s8, memory::format_tag::any),
        memory::desc({op.columns}, memory::data_type::f32, memory::format_tag::x), OneDnnDesc(y));
    const WeightRows rows{.channels = op.columns,
                          .count = op.inner,
                          .row = op.transpose_b ? op.inner : 1,
                          .step = op.transpose_b ? 1 : op.columns};
    return MakeProduct<dnnl::inner_product_forward>(description, rows,
                                                    OneDnnDesc({w, DType::kInt8}), post, request);
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

// For processors that multiply 8-bit numbers natively; otherwise a type that no op has.
KernelTraits ProductTraits() {
  if (OneDnnMultiplies8Bits()) return Int8Traits(FusesNumbers);
  return {.signatures = {{DType::kUInt8, DType::kFloat}}};
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-onednn-int8", KernelRank::kBest,
                              (MakeUnlessWrong<ops::Conv, MakeConvInt8>), ProductTraits());
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Gemm, "gemm-onednn-int8", KernelRank::kBest,
                              MakeGemmInt8, ProductTraits());

}  // namespace
}  // namespace caffe::cpu
