#include "caffe/layers/item_losses.hpp"

#include <algorithm>
#include <cfloat>
#include <limits>

#include "caffe/layers/detection/detection_blobs.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// The elements of an optional operand, or `count` ones.
std::vector<double> WeightsOf(const KernelContext& ctx, int input, int64_t count) {
  return ctx.has_input(input) ? ValuesOf(ctx.input(input)) : std::vector<double>(count, 1.0);
}

void StoreLosses(std::vector<double>& losses, const TensorView& top) {
  CopyTensor({{top.shape, DType::kDouble, Layout::kPlain}, losses.data()}, top);
}

}  // namespace

void EmitLossOfEachLabel(GraphBuilder& graph, const ops::LabelRule& rule, const ops::Focus& focus,
                         const std::vector<Value*>& inputs, Value* top) {
  const auto call = [rule, focus](const KernelContext& ctx) {
    const ops::ClassView view(ctx.input(0).shape, rule.axis);
    const std::vector<double> probabilities = ValuesOf(ctx.input(0));
    const std::vector<double> labels = ValuesOf(ctx.input(1));
    const std::vector<double> weights = WeightsOf(ctx, 2, view.classes);
    std::vector<double> losses(labels.size());
    for (int64_t position = 0; position < view.positions(); ++position) {
      const auto label = static_cast<int64_t>(labels[position]);
      if (ops::IsIgnored(rule.ignore_label, label)) continue;
      if (label < 0 || label >= view.classes) {
        losses[position] = std::numeric_limits<double>::quiet_NaN();
        continue;
      }
      const double probability = probabilities[view.At(position, label)];
      losses[position] = weights[label] * focus.Loss(std::max<double>(probability, FLT_MIN));
    }
    StoreLosses(losses, ctx.output(0));
  };
  graph.Emit(ops::HostCall{.what = "loss of each label", .call = call, .rounded_inputs = {0}},
             inputs, {top});
}

void EmitLossOfEachPosition(GraphBuilder& graph, const ops::SmoothL1Loss& op,
                            const std::vector<Value*>& inputs, Value* top) {
  const auto call = [op](const KernelContext& ctx) {
    const Shape& shape = ctx.input(0).shape;
    const int64_t positions = shape.count(2);
    const std::vector<double> a = ValuesOf(ctx.input(0)), b = ValuesOf(ctx.input(1));
    const std::vector<double> inside = WeightsOf(ctx, 2, shape.count());
    const std::vector<double> outside = WeightsOf(ctx, 3, shape.count());
    std::vector<double> losses(shape[0] * positions);
    for (int64_t i = 0; i < shape.count(); ++i) {
      const int64_t item = i / (shape[1] * positions);
      losses[item * positions + i % positions] += outside[i] * op.Of((a[i] - b[i]) * inside[i]);
    }
    StoreLosses(losses, ctx.output(0));
  };
  graph.Emit(ops::HostCall{.what = "loss of each position", .call = call, .rounded_inputs = {0}},
             inputs, {top});
}

}  // namespace caffe
