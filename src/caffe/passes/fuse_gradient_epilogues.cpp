// Rows that make pointwise work part of the gradient before it, if every kernel of the device for
// its types applies the longer epilogue:
//
//   ConvGradData, EltwiseSum(dx, a, b)          -> ConvGradData[add a, add b]  (gradients join)
//   ConvGradData, ReluGrad(y, dx)               -> ConvGradData[relu grad y]
//   ConvGradData, MaxPoolGrad, ReluGrad(y, dx)  -> ConvGradData[relu grad MaxPool(y)], MaxPoolGrad
//   LrnGrad(y, dz), ReluGrad(y, dx)             -> LrnGrad[relu grad y]
//   ConvGradData, BatchNormGrad(dx, y) with the residual's gradient
//                                               -> ConvGradData[relu grad y], BatchNormGrad(dx)
//   ConvGradData, SliceOf, ReluGrad each        -> ConvGradData[relu grad y], SliceOf
//
// In the third only winners get a gradient, and a winner's sign is that of the pooled value. In the
// fifth the convolution computes the residual's gradient, which BatchNormGrad would compute from dx
// and y. The last is the gradient of y = Concat(ReLUs), whose parts have the signs of their ReLUs.
//
// They follow the rows of forward, which give ReLUs before a normalization to it, and come before
// fuse-bias-gradients: a gradient of ReLU that also sums the bias's gradient is a pass over three
// tensors; here it costs a read of y, and the bias's gradient one of dx.
#include <algorithm>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::ConvGradData;
using ops::Pointwise;

// Inputs of MaxPoolGrad.
constexpr int kPoolMask = 0, kPoolDy = 1;

// The convolution's data gradient that computes the value, if its epilogue can grow. Vendors'
// engines fuse nothing after convolutions in groups.
Node* GrowingGradient(const Fusion& fusion, const Operand& value) {
  Node* writer = fusion.WriterOf(value);
  const auto* gradient = writer == nullptr ? nullptr : writer->op.As<ConvGradData>();
  const bool grows = gradient != nullptr && writer->direction == Direction::kBackward &&
                     gradient->geometry.group == 1 && writer->outputs[0] == value.value &&
                     !value->is_kept;
  return grows ? writer : nullptr;
}

// The epilogue with one more entry. Each entry reads one operand, after dy and w.
ops::Epilogue With(const ops::Epilogue& epilogue, Pointwise::Kind kind, float a = 0) {
  ops::Epilogue longer = epilogue;
  longer.push_back({kind, a, 0, ConvGradData::kW + 1 + static_cast<int>(epilogue.size())});
  return longer;
}

// The operand of a sum that is computed last, of those that a convolution's gradient computes.
const Operand* LastGrowing(const Fusion& fusion, const Node& sum) {
  const Operand* last = nullptr;
  for (const Operand& term : sum.inputs) {
    const Node* gradient = GrowingGradient(fusion, term);
    const bool grows = gradient != nullptr && fusion.OnlyReaderOf(term) == &sum &&
                       HaveOneType(*gradient, term, sum);
    if (grows && (last == nullptr || fusion.StepOf(term) > fusion.StepOf(*last))) last = &term;
  }
  return last;
}

// One of the gradients that join adds the others. It is computed where the sum was, when they are
// there.
bool FuseGradientSum(Fusion& fusion, Node& sum) {
  const auto* op = sum.op.As<ops::EltwiseSum>();
  const bool is_plain = op != nullptr && op->is_plain() && op->epilogue.empty();
  const Operand* term = is_plain ? LastGrowing(fusion, sum) : nullptr;
  if (term == nullptr) return false;
  Node& gradient = *fusion.WriterOf(*term);
  ops::Epilogue epilogue = *gradient.op.epilogue();
  std::vector<Operand> inputs = gradient.inputs;
  for (const Operand& other : sum.inputs) {
    if (&other == term) continue;
    if (!IsLike(other, *term)) return false;
    epilogue = With(epilogue, Pointwise::Kind::kAdd);
    inputs.push_back(other);
  }
  if (!fusion.Serves(gradient, epilogue)) return false;
  sum.op = gradient.op.WithEpilogue(std::move(epilogue));
  sum.inputs = std::move(inputs);
  sum.signature = gradient.signature;
  sum.precision_note = gradient.precision_note;
  sum.layers.swap(gradient.layers);
  AddLayers(sum, gradient);
  fusion.Erase(gradient);
  return true;
}

// A gradient that takes in the gradient of a ReLU: its epilogue then ends in an entry that reads y,
// which is one more operand if the gradient itself does not read y.
struct Sink {
  Node* gradient = nullptr;
  Operand y;
  ops::Epilogue epilogue;

  void Take() const {
    if (y != nullptr) SetInput(*gradient, gradient->inputs.size(), y);
    gradient->op = gradient->op.WithEpilogue(epilogue);
  }
};

Sink SinkOfConv(const Fusion& fusion, const Operand& y, const Operand& dx, float slope) {
  Node* gradient = GrowingGradient(fusion, dx);
  if (gradient == nullptr || fusion.StepOf(y) > fusion.StepOf(*gradient)) return {};
  return {gradient, y, With(*gradient->op.epilogue(), Pointwise::Kind::kReluGrad, slope)};
}

// The gradient of a response normalization of y reads y already; null if dx is something else.
Node* NormGradient(const Fusion& fusion, const Operand& y, const Operand& dx) {
  Node* gradient = fusion.WriterOf(dx);
  const bool is_of_y = gradient != nullptr && gradient->op.As<ops::LrnGrad>() != nullptr &&
                       !dx->is_kept && gradient->inputs[ops::LrnGrad::kX] == y.value;
  return is_of_y ? gradient : nullptr;
}

Sink SinkOfNorm(Node& gradient, float slope) {
  ops::Epilogue epilogue = *gradient.op.epilogue();
  epilogue.push_back({Pointwise::Kind::kReluGrad, slope, 0, ops::LrnGrad::kX});
  return {&gradient, {}, std::move(epilogue)};
}

// The node that computes dx if it is the gradient of a max pooling of y; otherwise null.
const Node* PoolGradient(const Fusion& fusion, const Operand& y, const Operand& dx) {
  const Node* gradient = fusion.WriterOf(dx);
  if (gradient == nullptr || gradient->op.As<ops::MaxPoolGrad>() == nullptr) return nullptr;
  const Node* pool = fusion.WriterOf(gradient->inputs[kPoolMask]);
  const bool is_of_y =
      pool != nullptr && pool->op.As<ops::MaxPool>() != nullptr && pool->inputs[0] == y.value;
  return is_of_y && gradient->outputs[0].dtype == dx.dtype ? gradient : nullptr;
}

// The gradient that may be multiplied by the slope where y is not positive; dx is that at y.
std::optional<Sink> FindSink(Fusion& fusion, const Operand& y, const Operand& dx, float slope) {
  if (!IsLike(y, dx)) return std::nullopt;
  if (const Node* pool_grad = PoolGradient(fusion, y, dx)) {
    const Operand& dy = pool_grad->inputs[kPoolDy];
    Operand pooled = y;  // is read as y is
    pooled.value = fusion.WriterOf(pool_grad->inputs[kPoolMask])->outputs[0].value;
    const bool is_alone = fusion.OnlyReaderOf(dy) == pool_grad;
    return is_alone ? FindSink(fusion, pooled, dy, slope) : std::nullopt;
  }
  Node* norm = NormGradient(fusion, y, dx);
  Sink sink = norm != nullptr ? SinkOfNorm(*norm, slope) : SinkOfConv(fusion, y, dx, slope);
  const bool serves = sink.gradient != nullptr && fusion.Serves(*sink.gradient, sink.epilogue);
  return serves ? std::optional(std::move(sink)) : std::nullopt;
}

bool FuseReluGradient(Fusion& fusion, Node& node) {
  const auto* relu_grad = node.op.As<ops::ReluGrad>();
  if (relu_grad == nullptr) return false;
  const Operand dx = node.inputs[1];
  Node* writer = fusion.WriterOf(dx);
  if (writer == nullptr || fusion.OnlyReaderOf(dx) != &node || !HaveOneType(*writer, dx, node))
    return false;
  const auto sink = FindSink(fusion, node.inputs[0], dx, relu_grad->negative_slope);
  if (!sink) return false;
  sink->Take();
  AddLayers(*sink->gradient, node);
  fusion.Absorb(*writer, node);
  return true;
}

// A normalization whose result is added to a residual before a ReLU.
bool FuseResidualGradient(Fusion& fusion, Node& norm) {
  using Grad = ops::BatchNormGrad;
  if (norm.op.As<Grad>() == nullptr || InputOf(norm, Grad::kY) == nullptr ||
      norm.outputs.size() <= Grad::kDresidual || norm.outputs[Grad::kDresidual] == nullptr) {
    return false;
  }
  const Operand dy = norm.inputs[Grad::kDy];
  const Result residual = norm.outputs[Grad::kDresidual];
  Node* writer = fusion.WriterOf(dy);
  if (writer == nullptr || fusion.OnlyReaderOf(dy) != &norm || !IsLike(residual, dy) ||
      writer->outputs[0].dtype != dy.dtype) {
    return false;
  }
  const auto sink = FindSink(fusion, norm.inputs[Grad::kY], dy, 0);
  if (!sink) return false;
  sink->Take();
  static_cast<Operand&>(writer->outputs[0]) = residual;
  norm.inputs[Grad::kDy].value = residual.value;
  norm.inputs.resize(Grad::kY);
  norm.outputs.resize(Grad::kDresidual);
  return true;
}

// A part of a concatenation's gradient, and the gradient of the ReLU that made the part.
struct MaskedPart {
  Node *slice = nullptr, *relu_grad = nullptr;
  float slope() const { return relu_grad->op.As<ops::ReluGrad>()->negative_slope; }
};

// Empty unless each part is the result of a ReLU, all with one slope, and has a gradient.
std::vector<MaskedPart> MaskedParts(const Fusion& fusion, const Node& concat) {
  const int axis = concat.op.As<ops::Concat>()->axis;
  std::vector<MaskedPart> parts;
  int64_t offset = 0;
  for (const Operand& part : concat.inputs) {
    MaskedPart masked;
    masked.relu_grad = fusion.ReaderWith<ops::ReluGrad>(
        part, [&](const Node& node) { return node.inputs[0] == part.value; });
    if (masked.relu_grad == nullptr) return {};
    const Operand& dpart = masked.relu_grad->inputs[1];
    masked.slice = fusion.WriterOf(dpart);
    const auto* cut = masked.slice == nullptr ? nullptr : masked.slice->op.As<ops::SliceOf>();
    if (cut == nullptr || cut->axis != axis || cut->offset != offset ||
        fusion.OnlyReaderOf(dpart) != masked.relu_grad ||
        !HaveOneType(*masked.slice, dpart, *masked.relu_grad) ||
        (!parts.empty() && masked.slope() != parts[0].slope())) {
      return {};
    }
    parts.push_back(masked);
    offset += part->desc.shape[axis];
  }
  return parts;
}

// All gradients of ReLUs after slices of one gradient become one before them.
bool FuseConcatGradient(Fusion& fusion, Node& concat) {
  if (concat.op.As<ops::Concat>() == nullptr) return false;
  const std::vector<MaskedPart> parts = MaskedParts(fusion, concat);
  if (parts.empty()) return false;
  const Operand dx = parts[0].slice->inputs[0];
  const Node* writer = fusion.WriterOf(dx);
  const bool is_split =
      writer != nullptr && !dx->is_kept && fusion.ReadersOf(dx).size() == parts.size() &&
      std::ranges::all_of(parts, [&](const MaskedPart& part) {
        return part.slice->inputs[0].value == dx.value && HaveOneType(*writer, dx, *part.slice);
      });
  if (!is_split) return false;
  Operand y = parts[0].relu_grad->inputs[0];  // the whole is read as the part is
  y.value = concat.outputs[0].value;
  const auto sink = FindSink(fusion, y, dx, parts[0].slope());
  if (!sink) return false;
  sink->Take();
  for (const MaskedPart& part : parts) {
    AddLayers(*sink->gradient, *part.relu_grad);
    fusion.Absorb(*part.slice, *part.relu_grad);
  }
  return true;
}

constexpr std::string_view kGradientEpilogues = "fuse-gradient-epilogues";
const FusionRow gradient_sums({.order = 30,
                               .name = kGradientEpilogues,
                               .apply = FuseGradientSum,
                               .direction = Direction::kBackward});
const FusionRow relu_gradients({.order = 31,
                                .name = kGradientEpilogues,
                                .apply = FuseReluGradient,
                                .direction = Direction::kBackward});
const FusionRow residual_gradients({.order = 32,
                                    .name = kGradientEpilogues,
                                    .apply = FuseResidualGradient,
                                    .direction = Direction::kBackward});
const FusionRow concat_gradients({.order = 33,
                                  .name = kGradientEpilogues,
                                  .apply = FuseConcatGradient,
                                  .direction = Direction::kForward});

}  // namespace
}  // namespace caffe::passes
