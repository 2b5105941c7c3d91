#include <algorithm>
#include <optional>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::Pointwise;

// What makes the value, if it is a convolution's gradient with whose epilogue what follows could
// go. Vendors' engines fuse nothing behind convolutions in groups.
Node* FusableWriter(const Fusion& fusion, const Operand& value) {
  Node* writer = fusion.WriterOf(value);
  const auto* gradient = writer == nullptr ? nullptr : writer->op.As<ops::ConvGradData>();
  const bool is_fusable = gradient != nullptr && writer->direction == Direction::kBackward &&
                          gradient->geometry.group == 1 && writer->outputs[0] == value.value &&
                          !value->is_kept;
  return is_fusable ? writer : nullptr;
}

bool IsPlainSum(const Node& node) {
  const auto* sum = node.op.As<ops::EltwiseSum>();
  return sum != nullptr && sum->epilogue.empty() &&
         std::ranges::all_of(sum->coefficients, [](float c) { return c == 1; });
}

// Inputs of MaxPoolGrad.
constexpr int kPoolMask = 0, kPoolDy = 1;

// The gradient that takes in one of a ReLU: its epilogue then ends in an entry that reads y, one
// more operand where the gradient does not read y itself.
struct Sink {
  Node* gradient = nullptr;
  Operand y;
  ops::Epilogue epilogue;
};

// A part of a concatenation's gradient, and the gradient of the ReLU that made the part.
struct MaskedPart {
  Node *slice = nullptr, *relu_grad = nullptr;
};

}  // namespace

// After this pass what follows the gradient at a convolution's input happens while that gradient is
// still in registers, where every kernel of the device that serves it declares the epilogue:
//
//   ConvGradData, EltwiseSum(dx, a, b)          -> ConvGradData[add a, add b]  (gradients join)
//   ConvGradData, ReluGrad(y, dx)               -> ConvGradData[relu grad y]
//   ConvGradData, SliceOf, ReluGrad each        -> ConvGradData[relu grad y], SliceOf
//   ConvGradData, MaxPoolGrad, ReluGrad(y, dx)  -> ConvGradData[relu grad MaxPool(y)], MaxPoolGrad
//   LrnGrad(y, dz), ReluGrad(y, dx)             -> LrnGrad[relu grad y]
//   ConvGradData, BatchNormGrad(dx, y) with the residual's gradient
//                                               -> ConvGradData[relu grad y], BatchNormGrad(dx)
//
// The third is the gradient of y = Concat(ReLUs), whose parts have the signs of their ReLUs. In the
// fourth only winners get a gradient, and a winner's sign is that of the pooled value. In the last
// the convolution makes the residual's gradient, which BatchNormGrad would make of dx and y.
//
// It follows fuse-epilogues, which gives ReLUs in front of a normalisation to that, and comes
// before fuse-bias-gradients: a gradient of ReLU that sums a bias's gradient is a pass over three
// tensors, here it costs a read of y, and the bias's gradient one of dx.
class FuseGradientEpilogues final : public Pass {
 public:
  std::string_view name() const override { return "fuse-gradient-epilogues"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    ForEachBackward(graph, [&](Node& node) { FuseSum(node); });
    ForEachBackward(graph, [&](Node& node) { FuseReluGrad(node); });
    ForEachBackward(graph, [&](Node& node) { FuseResidualGrad(node); });
    FuseConcatenations(graph);
  }

 private:
  template <typename Fn>
  void ForEachBackward(Graph& graph, Fn fn) {
    fusion_.emplace(graph);
    for (Node* node : fusion_->nodes()) {
      if (node->direction == Direction::kBackward && !fusion_->IsErased(node)) fn(*node);
    }
    fusion_->Finish();
  }

  // The epilogue with one more entry. Each entry reads one operand, behind dy and w.
  static ops::Epilogue With(const ops::Epilogue& epilogue, Pointwise::Kind kind, float a = 0) {
    ops::Epilogue longer = epilogue;
    longer.push_back({kind, a, 0, ops::ConvGradData::kW + 1 + static_cast<int>(epilogue.size())});
    return longer;
  }

  static bool HasTypeOf(const Operand& operand, const Operand& dx) {
    return operand.dtype == dx.dtype && operand->desc.dtype == dx.dtype &&
           operand->desc.shape == dx->desc.shape;
  }

  // One of the gradients that join adds the others. It is computed where the sum was, when they are
  // there.
  void FuseSum(Node& sum) {
    if (!IsPlainSum(sum)) return;
    const auto term = LastFusable(sum);
    if (term == sum.inputs.end()) return;
    Node& gradient = *fusion_->WriterOf(*term);
    ops::Epilogue epilogue = *gradient.op.epilogue();
    std::vector<Operand> inputs = gradient.inputs;
    for (auto other = sum.inputs.begin(); other != sum.inputs.end(); ++other) {
      if (other == term) continue;
      if (!HasTypeOf(*other, *term)) return;
      epilogue = With(epilogue, Pointwise::Kind::kAdd);
      inputs.push_back(*other);
    }
    if (!fusion_->IsServed(gradient, epilogue)) return;
    sum.op = gradient.op.WithEpilogue(std::move(epilogue));
    sum.inputs = std::move(inputs);
    sum.signature = gradient.signature;
    sum.precision_note = gradient.precision_note;
    sum.layers.swap(gradient.layers);
    Fusion::AddLayers(sum, gradient);
    fusion_->Erase(gradient);
  }

  // The operand of the sum that is computed last, of those that a convolution's gradient makes.
  std::vector<Operand>::iterator LastFusable(Node& sum) const {
    auto last = sum.inputs.end();
    for (auto term = sum.inputs.begin(); term != sum.inputs.end(); ++term) {
      const Node* gradient = FusableWriter(*fusion_, *term);
      const bool is_fusable = gradient != nullptr && fusion_->OnlyReaderOf(*term) == &sum &&
                              Fusion::HaveOneType(*gradient, *term, sum);
      if (is_fusable &&
          (last == sum.inputs.end() || fusion_->StepOf(*term) > fusion_->StepOf(*last)))
        last = term;
    }
    return last;
  }

  // The gradient that may be multiplied by the slope where y is not positive, dx being that at y.
  std::optional<Sink> FindSink(const Operand& y, const Operand& dx, float slope) const {
    if (!HasTypeOf(y, dx)) return std::nullopt;
    if (const Node* pool_grad = PoolGradient(y, dx)) {
      const Operand& dy = pool_grad->inputs[kPoolDy];
      Operand pooled = y;  // is read as y is
      pooled.value = fusion_->WriterOf(pool_grad->inputs[kPoolMask])->outputs[0].value;
      const bool is_alone = fusion_->OnlyReaderOf(dy) == pool_grad;
      return is_alone ? FindSink(pooled, dy, slope) : std::nullopt;
    }
    Sink sink = IsNormGradient(y, dx) ? SinkOfNorm(dx, slope) : SinkOfConv(y, dx, slope);
    const bool is_served =
        sink.gradient != nullptr && fusion_->IsServed(*sink.gradient, sink.epilogue);
    return is_served ? std::optional(std::move(sink)) : std::nullopt;
  }

  Sink SinkOfConv(const Operand& y, const Operand& dx, float slope) const {
    Node* gradient = FusableWriter(*fusion_, dx);
    if (gradient == nullptr || fusion_->StepOf(y) > fusion_->StepOf(*gradient)) return {};
    return {gradient, y, With(*gradient->op.epilogue(), Pointwise::Kind::kReluGrad, slope)};
  }

  // The gradient of a response normalisation of y reads y already.
  bool IsNormGradient(const Operand& y, const Operand& dx) const {
    const Node* gradient = fusion_->WriterOf(dx);
    return gradient != nullptr && gradient->op.As<ops::LrnGrad>() != nullptr && !dx->is_kept &&
           gradient->inputs[ops::LrnGrad::kX] == y.value;
  }

  Sink SinkOfNorm(const Operand& dx, float slope) const {
    Node* gradient = fusion_->WriterOf(dx);
    ops::Epilogue epilogue = *gradient->op.epilogue();
    epilogue.push_back({Pointwise::Kind::kReluGrad, slope, 0, ops::LrnGrad::kX});
    return {gradient, {}, std::move(epilogue)};
  }

  // What makes dx, if that is the gradient of a max pooling of y.
  const Node* PoolGradient(const Operand& y, const Operand& dx) const {
    const Node* gradient = fusion_->WriterOf(dx);
    if (gradient == nullptr || gradient->op.As<ops::MaxPoolGrad>() == nullptr) return nullptr;
    const Node* pool = fusion_->WriterOf(gradient->inputs[kPoolMask]);
    const bool is_of_y =
        pool != nullptr && pool->op.As<ops::MaxPool>() != nullptr && pool->inputs[0] == y.value;
    return is_of_y && gradient->outputs[0].dtype == dx.dtype ? gradient : nullptr;
  }

  static void Take(const Sink& sink) {
    Node& gradient = *sink.gradient;
    if (sink.y != nullptr) Fusion::SetInput(gradient, gradient.inputs.size(), sink.y);
    gradient.op = gradient.op.WithEpilogue(sink.epilogue);
  }

  void FuseReluGrad(Node& node) {
    const auto* relu_grad = node.op.As<ops::ReluGrad>();
    if (relu_grad == nullptr) return;
    const Operand dx = node.inputs[1];
    Node* writer = fusion_->WriterOf(dx);
    if (writer == nullptr || fusion_->OnlyReaderOf(dx) != &node ||
        !Fusion::HaveOneType(*writer, dx, node)) {
      return;
    }
    const auto sink = FindSink(node.inputs[0], dx, relu_grad->negative_slope);
    if (!sink) return;
    Take(*sink);
    Fusion::AddLayers(*sink->gradient, node);
    fusion_->Absorb(*writer, node);
  }

  // A normalisation whose result is added to a residual in front of a ReLU.
  void FuseResidualGrad(Node& norm) {
    using Grad = ops::BatchNormGrad;
    if (norm.op.As<Grad>() == nullptr || norm.inputs.size() <= Grad::kY ||
        norm.outputs.size() <= Grad::kDresidual || norm.outputs[Grad::kDresidual] == nullptr) {
      return;
    }
    const Operand dy = norm.inputs[Grad::kDy];
    const Result residual = norm.outputs[Grad::kDresidual];
    Node* writer = fusion_->WriterOf(dy);
    if (writer == nullptr || fusion_->OnlyReaderOf(dy) != &norm || !HasTypeOf(residual, dy) ||
        writer->outputs[0].dtype != dy.dtype) {
      return;
    }
    const auto sink = FindSink(norm.inputs[Grad::kY], dy, 0);
    if (!sink) return;
    Take(*sink);
    static_cast<Operand&>(writer->outputs[0]) = residual;
    norm.inputs[Grad::kDy].value = residual.value;
    norm.inputs.resize(Grad::kY);
    norm.outputs.resize(Grad::kDresidual);
  }

  void FuseConcatenations(Graph& graph) {
    fusion_.emplace(graph);
    for (Node* node : fusion_->nodes()) {
      if (node->op.As<ops::Concat>() != nullptr && node->direction == Direction::kForward)
        FuseParts(*node);
    }
    fusion_->Finish();
  }

  // All gradients of ReLU behind slices of one gradient become one before them.
  void FuseParts(const Node& concat) {
    const std::vector<MaskedPart> parts = MaskedParts(concat);
    if (parts.empty()) return;
    const Operand dx = parts[0].slice->inputs[0];
    const Node* writer = fusion_->WriterOf(dx);
    if (writer == nullptr || dx->is_kept || fusion_->ReadersOf(dx).size() != parts.size()) return;
    for (const MaskedPart& part : parts) {
      if (part.slice->inputs[0].value != dx.value ||
          !Fusion::HaveOneType(*writer, dx, *part.slice)) {
        return;
      }
    }
    Operand y = parts[0].relu_grad->inputs[0];  // as the part is read, so is the whole
    y.value = concat.outputs[0].value;
    const auto sink = FindSink(y, dx, SlopeOf(*parts[0].relu_grad));
    if (!sink) return;
    Take(*sink);
    for (const MaskedPart& part : parts) {
      Fusion::AddLayers(*sink->gradient, *part.relu_grad);
      fusion_->Absorb(*part.slice, *part.relu_grad);
    }
  }

  // Empty unless each part is that of a ReLU, all with one slope, and has a gradient.
  std::vector<MaskedPart> MaskedParts(const Node& concat) const {
    const int axis = concat.op.As<ops::Concat>()->axis;
    std::vector<MaskedPart> parts;
    int64_t offset = 0;
    for (const Operand& part : concat.inputs) {
      Node* relu_grad = ReluGradOf(part);
      Node* slice = relu_grad == nullptr ? nullptr : fusion_->WriterOf(relu_grad->inputs[1]);
      const auto* cut = slice == nullptr ? nullptr : slice->op.As<ops::SliceOf>();
      if (cut == nullptr || cut->axis != axis || cut->offset != offset ||
          fusion_->OnlyReaderOf(slice->outputs[0]) != relu_grad ||
          !Fusion::HaveOneType(*slice, relu_grad->inputs[1], *relu_grad) ||
          SlopeOf(*relu_grad) != SlopeOf(parts.empty() ? *relu_grad : *parts[0].relu_grad)) {
        return {};
      }
      parts.push_back({slice, relu_grad});
      offset += part->desc.shape[axis];
    }
    return parts;
  }

  static float SlopeOf(const Node& relu_grad) {
    return relu_grad.op.As<ops::ReluGrad>()->negative_slope;
  }

  // The one whose ReLU made `y`.
  Node* ReluGradOf(const Value* y) const {
    for (Node* node : fusion_->ReadersOf(y)) {
      if (node->op.As<ops::ReluGrad>() != nullptr && node->inputs[0] == y &&
          !fusion_->IsErased(node)) {
        return node;
      }
    }
    return nullptr;
  }

  std::optional<Fusion> fusion_;
};

std::unique_ptr<Pass> MakeFuseGradientEpilogues() {
  return std::make_unique<FuseGradientEpilogues>();
}

}  // namespace caffe::passes
