// A row that does not compute pixels that nobody reads. Caffe's residual nets have their strides in
// 1x1 convolutions, which read every second pixel of a block's sum:
//
//   Conv 3x3 -> a, Conv 1x1(a)[add r, relu] -> y, Conv 1x1, stride 2(y) -> p, ... (y) -> q
//     -> Conv 3x3, stride 2 -> a', AvePool 1x1, stride 2(r) -> r',
//        Conv 1x1(a')[add r', relu] -> y', Conv 1x1(y') -> p, ... (y') -> q
//
// No result changes. It follows the rows that make the sum part of a convolution.
#include <algorithm>
#include <optional>
#include <vector>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/passes/fusion.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;
using Strides = std::vector<int64_t>;

constexpr int kSpatialAxes = 2;

bool IsOne(int64_t extent) {
  return extent == 1;
}

// The strides of a convolution that reads single pixels of `value`; nothing for other nodes.
std::optional<Strides> PixelStrides(const Node& node, const Value* value) {
  const auto* conv = node.op.As<Conv>();
  if (conv == nullptr || node.direction != Direction::kForward || node.inputs[Conv::kX] != value ||
      std::ranges::count(node.inputs, value, &Operand::value) != 1) {
    return std::nullopt;
  }
  const ops::ConvGeometry& geometry = conv->geometry;
  if (geometry.spatial_axes() != kSpatialAxes || !std::ranges::all_of(geometry.kernel, IsOne) ||
      std::ranges::any_of(geometry.pad, [](int64_t pad) { return pad != 0; })) {
    return std::nullopt;
  }
  return geometry.stride;
}

// Computes only every stride-th pixel.
ops::ConvGeometry Strided(ops::ConvGeometry geometry, const Strides& strides) {
  for (int axis = 0; axis < kSpatialAxes; ++axis) geometry.stride[axis] *= strides[axis];
  return geometry;
}

Shape SampledShape(const Shape& shape, const Strides& strides) {
  Shape sampled = shape;
  for (int axis = 0; axis < kSpatialAxes; ++axis)
    sampled = sampled.With(axis + 2, (shape[axis + 2] - 1) / strides[axis] + 1);
  return sampled;
}
bool CanSkipPixels(const Node& node, const Strides& strides) {
  const auto* conv = node.op.As<Conv>();
  if (conv == nullptr || node.direction != Direction::kForward || node.outputs.size() != 1 ||
      conv->geometry.spatial_axes() != kSpatialAxes ||
      Strided(conv->geometry, strides).LeavesOutPixels()) {
    return false;
  }
  const Value& y = *node.outputs[0];
  return y.kind == ValueKind::kActivation && !y.is_kept && !y.must_be_plain;
}

// The strides that all readers have.
std::optional<Strides> StridesOfReaders(const Fusion& fusion, const Value* value) {
  std::optional<Strides> common;
  for (const Node* reader : fusion.ReadersOf(value)) {
    const std::optional<Strides> strides = PixelStrides(*reader, value);
    if (!strides || (common && *common != *strides)) return std::nullopt;
    common = strides;
  }
  return common;
}

Value& Sampled(Graph& graph, const Value& whole, const Strides& strides) {
  Value& value = graph.NewValue(whole.name + ":sampled", SampledShape(whole.desc.shape, strides),
                                whole.desc.dtype, ValueKind::kActivation);
  value.layer = whole.layer;
  value.at_least_float = whole.at_least_float;
  value.sampled_from = &whole;
  return value;
}

void SkipPixels(const Fusion& fusion, Node& node, const Strides& strides);

// An operand that is added to the node's result: its pixels are left out by its writer, or picked.
void SamplePixels(const Fusion& fusion, Node& node, Operand* operand, const Strides& strides) {
  Node* writer = fusion.WriterOf(*operand);
  if (writer != nullptr && fusion.OnlyReaderOf(*operand) == &node &&
      CanSkipPixels(*writer, strides)) {
    SkipPixels(fusion, *writer, strides);
    operand->value = writer->outputs[0];
    return;
  }
  Value& whole = *operand->value;
  operand->value = &Sampled(fusion.graph(), whole, strides);
  const ops::PoolGeometry geometry{
      .kernel = {1, 1}, .stride = {strides[0], strides[1]}, .rounds_down = true};
  Node& pool =
      fusion.graph().InsertBefore(node, ops::AvePool{geometry}, {&whole}, {operand->value});
  pool.signature = {operand->dtype,
                    operand->dtype == DType::kDouble ? DType::kDouble : DType::kFloat};
  pool.inputs[0].dtype = pool.outputs[0].dtype = operand->dtype;
}

// Makes the convolution compute only every stride-th pixel.
void SkipPixels(const Fusion& fusion, Node& node, const Strides& strides) {
  Conv conv = *node.op.As<Conv>();
  for (const ops::Pointwise& entry : conv.epilogue) {
    if (entry.reads_data()) SamplePixels(fusion, node, &node.inputs[entry.operand], strides);
  }
  conv.geometry = Strided(conv.geometry, strides);
  node.op = std::move(conv);
  node.outputs[0].value = &Sampled(fusion.graph(), *node.outputs[0], strides);
}

void ReadAll(Node& reader, Value* pixels) {
  Conv conv = *reader.op.As<Conv>();
  std::ranges::fill(conv.geometry.stride, 1);
  reader.op = std::move(conv);
  reader.inputs[Conv::kX].value = pixels;
}

bool HoistStrides(Fusion& fusion, Node& node) {
  if (node.outputs.empty()) return false;
  const Value* whole = node.outputs[0];
  const std::optional<Strides> strides = StridesOfReaders(fusion, whole);
  if (!strides || std::ranges::all_of(*strides, IsOne) || !CanSkipPixels(node, *strides))
    return false;
  SkipPixels(fusion, node, *strides);
  for (Node* reader : fusion.ReadersOf(whole)) ReadAll(*reader, node.outputs[0]);
  return true;
}

const FusionRow hoist_strides_row(
    {.order = 20, .name = "hoist-strides", .apply = HoistStrides, .is_reversed = true});

}  // namespace
}  // namespace caffe::passes
