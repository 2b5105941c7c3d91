// Convolutions by oneDNN. Images stay in the plan's layout. The net keeps weights and their
// gradients plain; the plan converts them to and from oneDNN's preferred format in separate steps.
// They are converted here only inside another kernel, which has no such steps.
#include <algorithm>
#include <optional>

#include "caffe/cpu/kernels/conv_check.hpp"
#include "caffe/cpu/kernels/conv_descs.hpp"
#include "caffe/cpu/kernels/epilogue.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {
namespace {

using dnnl::algorithm;
using dnnl::memory;
using dnnl::prop_kind;

// The constant that AppendRelu() subtracts, as a tensor of one element.
float minus_tiny = -0x1p-34f;
memory::desc MinusTinyDesc() {
  return {{1, 1, 1, 1}, memory::data_type::f32, memory::format_tag::nchw};
}

// oneDNN's ReLU with slope 0 is max(x, 0), which turns NaN into 0 and so hides where a net went
// wrong. With any other slope, NaN (and -inf) stay. The slope is therefore 2^-92 here, and adding
// and subtracting 2^-34 removes what that leaves of numbers above -2^34. Positive numbers below
// 2^-10 are rounded to a multiple of 2^-58. A smaller slope would turn ordinary numbers into
// denormals, which are 100 times slower. (Two linear post-ops would share their constants.)
void AppendRelu(float slope, dnnl::post_ops* post) {
  AppendEltwise(algorithm::eltwise_relu, slope == 0 ? 0x1p-92f : slope, 0, post);
  if (slope != 0) return;
  AppendEltwise(algorithm::eltwise_linear, 1, -minus_tiny, post);
  post->append_binary(algorithm::binary_add, MinusTinyDesc());
}

dnnl::primitive_attr Attributes(const dnnl::post_ops& post = {}) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attributes.set_post_ops(post);
  return attributes;
}

// An epilogue as oneDNN post-ops, and the operands that they read. A first addend that may be
// overwritten is placed in the result's memory, which is faster than a third tensor. Below AVX-512
// it always is placed there: oneDNN then starts its sums with it, which rounds differently from
// adding a third tensor at the end, and results must not depend on whether other nodes read the
// addend.
struct PostOps {
  dnnl::post_ops ops;
  struct Operand {
    int argument = 0;
    memory::desc desc;
    int input = -1;  // of the node; -1: minus_tiny
  };
  std::vector<Operand> operands;
  int replaced_input = -1;  // index of the input that the result is added to

  PostOps(const ops::Epilogue& epilogue, const memory::desc& y,
          std::span<const OperandDesc> inputs) {
    for (const ops::Pointwise& entry : epilogue) {
      if (entry.kind == ops::Pointwise::Kind::kAdd) {
        if (ops.len() == 0 && (inputs[entry.operand].is_last_read || !OneDnnAddsLast())) {
          ops.append_sum(1.0F);
          replaced_input = entry.operand;
          continue;
        }
        ops.append_binary(algorithm::binary_add, y);
        Read(y, entry.operand);
      } else {
        CAFFE_ASSERT(entry.kind == ops::Pointwise::Kind::kRelu);
        AppendRelu(entry.a, &ops);
        if (entry.a == 0) Read(MinusTinyDesc(), -1);
      }
    }
  }

  // Declares the post-ops' operands as the primitive's next operands.
  void AddOperands(OneDnnPrimitive* primitive) const {
    for (const Operand& operand : operands) {
      primitive->AddOperand(operand.argument, operand.desc);
      if (operand.input < 0) primitive->SetOperand(primitive->num_operands() - 1, &minus_tiny);
    }
  }
  void SetOperands(int first, const KernelContext& ctx, OneDnnPrimitive* primitive) const {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].input >= 0)
        primitive->SetOperand(first + static_cast<int>(i), ctx.input(operands[i].input).data);
    }
  }

  // Copies the addend to the result, for plans that could not give it the result's memory.
  void PlaceReplaced(const KernelContext& ctx) const {
    if (replaced_input < 0) return;
    CopyBytes(ctx.input(replaced_input), ctx.output(0));
  }

 private:
  // Adds an operand of the post-op that was appended last.
  void Read(const memory::desc& desc, int input) {
    const int argument = DNNL_ARG_ATTR_MULTIPLE_POST_OP(ops.len() - 1) | DNNL_ARG_SRC_1;
    operands.push_back({argument, desc, input});
  }
};

dnnl::convolution_forward::primitive_desc ForwardDesc(const ConvDescs& d,
                                                      const dnnl::primitive_attr& attributes) {
  const auto describe = [&](const auto&... bias) {
    return DescribeOneDnn<dnnl::convolution_forward>(
        attributes, prop_kind::forward_training, algorithm::convolution_direct, d.x, d.any_weights,
        bias..., d.y, d.strides, d.dilations, d.pad_front, d.pad_back);
  };
  return d.has_bias ? describe(d.bias) : describe();
}

dnnl::convolution_backward_data::primitive_desc BackwardDataDesc(const ConvDescs& d) {
  return DescribeOneDnnGradient<dnnl::convolution_backward_data>(
      Attributes(), ForwardDesc(d, Attributes()), algorithm::convolution_direct, d.x, d.any_weights,
      d.y, d.strides, d.dilations, d.pad_front, d.pad_back);
}

// `forward` describes the forward pass of this gradient: for bfloat16 its weights are bfloat16, but
// their gradient is float.
dnnl::convolution_backward_weights::primitive_desc BackwardWeightsDesc(const ConvDescs& d,
                                                                       const ConvDescs& forward) {
  const auto hint = ForwardDesc(forward, Attributes());
  const auto describe = [&](const auto&... bias) {
    return DescribeOneDnnGradient<dnnl::convolution_backward_weights>(
        Attributes(), hint, algorithm::convolution_direct, d.x, d.any_weights, bias..., d.y,
        d.strides, d.dilations, d.pad_front, d.pad_back);
  };
  return d.has_bias ? describe(d.bias) : describe();
}

// Returns why oneDNN cannot compute a convolution. `image`: shape that the windows move over.
std::optional<Refusal> Refuse(const ops::ConvGeometry& geometry, const Shape& image, DType dtype,
                              int64_t count) {
  if (!OneDnnComputes(dtype)) {
    return Refusal{"this processor has no fast arithmetic for " + std::string(Name(dtype))};
  }
  if (geometry.spatial_axes() > 3) return Refusal{"more than 3 spatial axes"};
  if (count == 0) return Refusal{"an empty batch"};
  return RefuseLarge(geometry, image);
}

// Converts weights from the net's plain format to oneDNN's; does nothing if they are the same. In a
// step of the plan if the operand may be packed, else in memory of `layout`.
class WeightsIn {
 public:
  WeightsIn(const memory::desc& plain, const memory::desc& preferred, const OperandDesc& weights,
            WorkspaceLayout* layout)
      : bytes_(preferred.get_size()), is_step_(weights.may_be_packed) {
    if (plain == preferred) return;
    reorder_.emplace(plain, preferred, /*accumulates=*/false);
    if (is_step_) return;
    weights_offset_ = layout->Add(bytes_);
    scratchpad_offset_ = layout->Add(reorder_->scratchpad_bytes());
  }

  // Address of the weights in oneDNN's format.
  void* Get(const KernelContext& ctx, int operand) {
    void* const weights = ctx.input(operand).data;
    if (!reorder_ || is_step_) return weights;
    char* workspace = static_cast<char*>(ctx.workspace);
    reorder_->Run(weights, workspace + weights_offset_, workspace + scratchpad_offset_);
    return workspace + weights_offset_;
  }
  // The step before the kernel; nothing if none is needed.
  static std::optional<PackedOperand> Packed(int operand, std::shared_ptr<WeightsIn> weights) {
    if (!weights->reorder_ || !weights->is_step_) return std::nullopt;
    const auto pack = [weights](const KernelContext& ctx) {
      weights->reorder_->Run(ctx.input(0).data, ctx.output(0).data, ctx.workspace);
    };
    return PackedOperand{operand, weights->bytes_, pack, weights->reorder_->scratchpad_bytes()};
  }

 private:
  std::optional<ReorderStep> reorder_;
  size_t bytes_ = 0;
  bool is_step_ = false;
  size_t weights_offset_ = 0, scratchpad_offset_ = 0;
};

// Converts weight gradients from oneDNN's format to the net's plain one, where they overwrite or
// are added to the old values. In a step of the plan if the operand may be packed, else in memory
// of `layout`.
class GradientOut {
 public:
  GradientOut(const memory::desc& preferred, const memory::desc& plain, const OperandDesc& gradient,
              WorkspaceLayout* layout)
      : bytes_(preferred.get_size()),
        is_plain_(preferred == plain),
        is_step_(gradient.may_be_packed && !is_plain_),
        copy_(preferred, plain, /*accumulates=*/false),
        add_(preferred, plain, /*accumulates=*/true) {
    if (is_step_) return;
    gradient_offset_ = layout->Add(bytes_);
    scratchpad_offset_ = layout->Add(scratchpad_bytes());
  }

  // The address that oneDNN writes to.
  void* Destination(const KernelContext& ctx) const {
    const bool is_direct = is_step_ || (is_plain_ && !ctx.accumulates(kDw));
    return is_direct ? ctx.output(kDw).data : static_cast<char*>(ctx.workspace) + gradient_offset_;
  }
  // Copies the gradient from there to the output unless it is the output.
  void Store(const KernelContext& ctx) {
    void* const from = Destination(ctx);
    if (from == ctx.output(kDw).data) return;
    Convert(ctx, from, static_cast<char*>(ctx.workspace) + scratchpad_offset_);
  }
  // The step after the kernel; nothing if none is needed.
  static std::optional<PackedOperand> Packed(std::shared_ptr<GradientOut> gradient) {
    if (!gradient->is_step_) return std::nullopt;
    const auto unpack = [gradient](const KernelContext& ctx) {
      gradient->Convert(ctx, ctx.input(0).data, ctx.workspace);
    };
    return PackedOperand{kDw, gradient->bytes_, unpack, gradient->scratchpad_bytes()};
  }

 private:
  static constexpr int kDw = ops::ConvGradWeights::kDw;

  size_t scratchpad_bytes() const {
    return std::max(copy_.scratchpad_bytes(), add_.scratchpad_bytes());
  }
  void Convert(const KernelContext& ctx, void* from, void* scratchpad) {
    ReorderStep& step = ctx.accumulates(kDw) ? add_ : copy_;
    step.Run(from, ctx.output(kDw).data, scratchpad);
  }

  size_t bytes_ = 0;
  bool is_plain_ = false, is_step_ = false;
  ReorderStep copy_, add_;
  size_t gradient_offset_ = 0, scratchpad_offset_ = 0;
};

// A defect of oneDNN 2.6: its 1x1 kernel for bfloat16 computes wrong sums if a post-op has an
// operand, the number of input channels is odd, and it processes 30 pixels at a time.
bool IsDefective(const ops::Conv& op, const TensorDesc& x,
                 const dnnl::convolution_forward::primitive_desc& description) {
  return x.dtype == DType::kBFloat16 && !op.epilogue.empty() &&
         x.shape[1] / op.geometry.group % 2 == 1 &&
         std::string(description.impl_info_str()).starts_with("jit_bf16_1x1");
}

// Defects of oneDNN 2.6 for channels-last images: its convolution by matrix product adds wrong
// elements of a post-op's operand; the one by small products ignores the operand if a window is
// empty; and the SSE4.1 one of single channels crashes if the channels are not a multiple of 8.
bool AddsWrongly(const ops::Conv& op, const TensorDesc& x, const TensorDesc& y,
                 const dnnl::convolution_forward::primitive_desc& description) {
  const bool adds = std::ranges::any_of(op.epilogue, &ops::Pointwise::reads_data);
  if (!adds || y.layout == Layout::kPlain) return false;
  const std::string name = description.impl_info_str();
  return name.find("gemm") != name.npos ||
         (name.find("dw:sse41") != name.npos && y.shape[1] % 8 != 0) ||
         (name.starts_with("brg") && HasEmptyWindow(op.geometry, x.shape, y.shape));
}

// y = the epilogue of `sums`, in memory order.
void ApplyApart(const ops::Epilogue& epilogue, const KernelContext& ctx, const void* sums) {
  const TensorView& y = ctx.output(0);
  VisitFloat(y.dtype, [&]<typename T>(TypeTag<T>) {
    const T* from = static_cast<const T*>(sums);
    T* to = y.as<T>();
    ParallelFor(y.count(), kPointwiseGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = T(ApplyEpilogue(ctx, epilogue, 0, i, static_cast<float>(from[i])));
    });
  });
}

struct ConvState {
  OneDnnPrimitive conv;
  std::shared_ptr<WeightsIn> weights;
  size_t scratchpad_offset = 0;
  size_t sums_offset = 0;  // used if the epilogue is applied separately
};

KernelOrRefusal MakeConv(const ops::Conv& op, const KernelRequest& request) {
  using ops::Conv;
  if (const auto refusal = Refuse(op.geometry, request.inputs[Conv::kX].shape,
                                  request.inputs[Conv::kX].dtype, request.outputs[0].count())) {
    return *refusal;
  }
  if (const auto refusal = RefuseWindows(op.geometry, request.inputs[Conv::kX].dtype))
    return *refusal;
  const bool has_bias = request.inputs.size() > Conv::kBias && request.inputs[Conv::kBias].present;
  try {
    const ConvDescs descs = DescribeConv(op.geometry, request.inputs[Conv::kX],
                                         request.inputs[Conv::kW], request.outputs[0], has_bias);
    PostOps post(op.epilogue, descs.y, request.inputs);
    auto description = ForwardDesc(descs, Attributes(post.ops));
    const bool is_apart =
        AddsWrongly(op, request.inputs[Conv::kX], request.outputs[0], description);
    if (is_apart) {
      post = PostOps({}, descs.y, request.inputs);
      description = ForwardDesc(descs, Attributes());
    }
    if (IsDefective(op, request.inputs[Conv::kX], description))
      return Refusal{"bfloat16 kernels of 1x1 with odd channels and an epilogue"};
    if (std::string(description.impl_info_str()).starts_with("ref"))
      return Refusal{"oneDNN has only its reference for this epilogue"};
    WorkspaceLayout layout;
    auto state = std::make_shared<ConvState>();
    state->weights = std::make_shared<WeightsIn>(descs.weights, description.weights_desc(),
                                                 request.inputs[Conv::kW], &layout);
    state->scratchpad_offset = layout.Add(description.scratchpad_desc().get_size());
    // Not in y, which may be the memory of the addend.
    if (is_apart) state->sums_offset = layout.Add(descs.y.get_size());
    state->conv = OneDnnPrimitive(dnnl::convolution_forward(description));
    state->conv.AddOperand(DNNL_ARG_SRC, descs.x);
    state->conv.AddOperand(DNNL_ARG_WEIGHTS, description.weights_desc());
    state->conv.AddOperand(DNNL_ARG_DST, descs.y);
    state->conv.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
    if (has_bias) state->conv.AddOperand(DNNL_ARG_BIAS, descs.bias);
    const int first_post = state->conv.num_operands();
    post.AddOperands(&state->conv);
    Kernel kernel{"",
                  [state, has_bias, post, first_post, is_apart,
                   epilogue = op.epilogue](const KernelContext& ctx) {
                    char* const workspace = static_cast<char*>(ctx.workspace);
                    char* const sums = workspace + state->sums_offset;
                    state->conv.SetOperand(0, ctx.input(Conv::kX).data);
                    state->conv.SetOperand(1, state->weights->Get(ctx, Conv::kW));
                    state->conv.SetOperand(2, is_apart ? sums : ctx.output(0).data);
                    state->conv.SetOperand(3, workspace + state->scratchpad_offset);
                    if (has_bias) state->conv.SetOperand(4, ctx.input(Conv::kBias).data);
                    post.SetOperands(first_post, ctx, &state->conv);
                    post.PlaceReplaced(ctx);
                    state->conv.Run();
                    if (is_apart) ApplyApart(epilogue, ctx, sums);
                  },
                  layout.bytes()};
    kernel.packed_weights = WeightsIn::Packed(Conv::kW, state->weights);
    if (post.replaced_input >= 0 && request.inputs[post.replaced_input].is_last_read)
      kernel.replaced_input = post.replaced_input;
    return kernel;
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

KernelOrRefusal MakeConvGradData(const ops::ConvGradData& op, const KernelRequest& request) {
  constexpr int kW = ops::ConvGradData::kW;
  if (const auto refusal = Refuse(op.geometry, request.outputs[0].shape, request.inputs[0].dtype,
                                  request.outputs[0].count())) {
    return *refusal;
  }
  try {
    const ConvDescs descs = DescribeConv(op.geometry, request.outputs[0], request.inputs[kW],
                                         request.inputs[0], /*has_bias=*/false);
    const auto description = BackwardDataDesc(descs);
    auto state = std::make_shared<ConvState>();
    WorkspaceLayout layout;
    state->weights = std::make_shared<WeightsIn>(descs.weights, description.weights_desc(),
                                                 request.inputs[kW], &layout);
    state->scratchpad_offset = layout.Add(description.scratchpad_desc().get_size());
    state->conv = OneDnnPrimitive(dnnl::convolution_backward_data(description));
    state->conv.AddOperand(DNNL_ARG_DIFF_DST, descs.y);
    state->conv.AddOperand(DNNL_ARG_WEIGHTS, description.weights_desc());
    state->conv.AddOperand(DNNL_ARG_DIFF_SRC, descs.x);
    state->conv.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
    Kernel kernel{"",
                  [state](const KernelContext& ctx) {
                    state->conv.SetOperand(0, ctx.input(0).data);
                    state->conv.SetOperand(1, state->weights->Get(ctx, kW));
                    state->conv.SetOperand(2, ctx.output(0).data);
                    state->conv.SetOperand(
                        3, static_cast<char*>(ctx.workspace) + state->scratchpad_offset);
                    state->conv.Run();
                  },
                  layout.bytes()};
    kernel.packed_weights = WeightsIn::Packed(kW, state->weights);
    return kernel;
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

struct GradWeightsState {
  OneDnnPrimitive conv;
  std::shared_ptr<GradientOut> gradient;
  size_t bias_offset = 0, scratchpad_offset = 0;
};

void AddBias(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

void RunGradWeights(GradWeightsState& state, const KernelContext& ctx) {
  char* workspace = static_cast<char*>(ctx.workspace);
  const bool has_bias = ctx.has_output(1);
  const bool bias_in_place = has_bias && !ctx.accumulates(1);
  state.conv.SetOperand(0, ctx.input(0).data);
  state.conv.SetOperand(1, ctx.input(1).data);
  state.conv.SetOperand(2, state.gradient->Destination(ctx));
  state.conv.SetOperand(3, workspace + state.scratchpad_offset);
  if (has_bias)
    state.conv.SetOperand(4, bias_in_place ? ctx.output(1).data : workspace + state.bias_offset);
  state.conv.Run();
  state.gradient->Store(ctx);
  if (has_bias && !bias_in_place) {
    AddBias(reinterpret_cast<const float*>(workspace + state.bias_offset),
            ctx.output(1).as<float>(), ctx.output(1).count());
  }
}

// Defects of oneDNN 2.6 in bfloat16.
std::optional<Refusal> RefuseGradWeights(const ops::ConvGeometry& g, const TensorDesc& x) {
  if (x.dtype != DType::kBFloat16) return std::nullopt;
  // It multiplies uninitialized parts of its scratchpad.
  if (x.shape.dims().back() < g.stride.back())
    return Refusal{"bfloat16 rows shorter than the stride"};
  // It writes past the end of its scratchpad.
  const auto is_one = [](int64_t extent) { return extent == 1; };
  if (std::ranges::all_of(g.kernel, is_one) && !std::ranges::all_of(g.stride, is_one))
    return Refusal{"bfloat16 kernels of 1x1 with strides"};
  // It reads uninitialized memory.
  if (!AreAll(g.dilation, 1)) return Refusal{"bfloat16 kernels with dilation"};
  return std::nullopt;
}

KernelOrRefusal MakeConvGradWeights(const ops::ConvGradWeights& op, const KernelRequest& request) {
  if (const auto refusal = Refuse(op.geometry, request.inputs[0].shape, request.inputs[0].dtype,
                                  request.inputs[1].count())) {
    return *refusal;
  }
  if (const auto refusal = RefuseGradWeights(op.geometry, request.inputs[0])) return *refusal;
  const OperandDesc& weights = request.outputs[0];
  if (!weights.present) return Refusal{"only together with the gradient of the weights"};
  if (weights.dtype != DType::kFloat) return Refusal{"only float gradients"};
  const bool has_bias = request.outputs.size() > 1 && request.outputs[1].present;
  try {
    const ConvDescs descs =
        DescribeConv(op.geometry, request.inputs[0], weights, request.inputs[1], has_bias);
    TensorDesc forward_weights = weights;
    forward_weights.dtype = request.inputs[0].dtype;
    const ConvDescs forward =
        DescribeConv(op.geometry, request.inputs[0], forward_weights, request.inputs[1], has_bias);
    const auto description = BackwardWeightsDesc(descs, forward);
    auto state = std::make_shared<GradWeightsState>();
    const memory::desc preferred = description.diff_weights_desc();
    WorkspaceLayout layout;
    state->gradient = std::make_shared<GradientOut>(preferred, descs.weights, weights, &layout);
    state->bias_offset =
        layout.Add(static_cast<size_t>(request.inputs[1].shape[1]) * sizeof(float));
    state->scratchpad_offset = layout.Add(description.scratchpad_desc().get_size());
    state->conv = OneDnnPrimitive(dnnl::convolution_backward_weights(description));
    state->conv.AddOperand(DNNL_ARG_SRC, descs.x);
    state->conv.AddOperand(DNNL_ARG_DIFF_DST, descs.y);
    state->conv.AddOperand(DNNL_ARG_DIFF_WEIGHTS, preferred);
    state->conv.AddOperand(DNNL_ARG_SCRATCHPAD, description.scratchpad_desc());
    if (has_bias) state->conv.AddOperand(DNNL_ARG_DIFF_BIAS, descs.bias);
    Kernel kernel{"", [state](const KernelContext& ctx) { RunGradWeights(*state, ctx); },
                  layout.bytes()};
    kernel.packed_gradient = GradientOut::Packed(state->gradient);
    return kernel;
  } catch (const dnnl::error& error) {
    return Refusal{std::string("oneDNN: ") + error.what()};
  }
}

CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::Conv, "conv-onednn", KernelRank::kBest,
                              (MakeUnlessWrong<ops::Conv, MakeConv>),
                              {.signatures = OneDnnSignatures(), .fuses = OneDnnFuses});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradData, "conv-grad-data-onednn",
                              KernelRank::kBest,
                              (MakeUnlessWrong<ops::ConvGradData, MakeConvGradData>),
                              {.signatures = OneDnnSignatures()});
CAFFE_REGISTER_KERNEL_FACTORY(DeviceKind::kCpu, ops::ConvGradWeights, "conv-grad-weights-onednn",
                              KernelRank::kBest,
                              (MakeUnlessWrong<ops::ConvGradWeights, MakeConvGradWeights>),
                              {.signatures = OneDnnSignatures()});

}  // namespace
}  // namespace caffe::cpu
