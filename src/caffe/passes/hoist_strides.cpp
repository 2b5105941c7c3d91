#include <algorithm>
#include <optional>
#include <vector>

#include "caffe/ops/conv.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/passes/fusion.hpp"
#include "caffe/passes/pass.hpp"

namespace caffe::passes {
namespace {

using ops::Conv;
using Strides = std::vector<int64_t>;

constexpr int kSpatialAxes = 2;

bool IsOne(int64_t extent) {
  return extent == 1;
}

// The strides of a convolution that reads single pixels of `value`, each by itself; nothing where
// the node is something else.
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

// Makes every so-maniest pixel.
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

}  // namespace

// After this pass pixels that nobody reads are not computed. Caffe's residual nets have their
// strides in convolutions of 1x1, which read every second pixel of a block's sum:
//
//   Conv 3x3 -> a, Conv 1x1(a)[add r, relu] -> y, Conv 1x1, stride 2(y) -> p, ... (y) -> q
//     -> Conv 3x3, stride 2 -> a', AvePool 1x1, stride 2(r) -> r', Conv 1x1(a')[add r', relu] ->
//     y',
//        Conv 1x1(y') -> p, ... (y') -> q
//
// The numbers stay what they are. It follows fuse-epilogues, which makes the sum part of a
// convolution. A keep-all plan is left alone: its blobs must exist.
class HoistStrides final : public Pass {
 public:
  std::string_view name() const override { return "hoist-strides"; }
  bool is_optional() const override { return true; }

  void Run(Graph& graph) override {
    if (graph.options.keep_all) return;
    graph_ = &graph;
    fusion_.emplace(graph);
    std::vector<Node*> nodes = fusion_->nodes();
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (node->outputs.empty()) continue;
      const std::optional<Strides> strides = StridesOfReaders(node->outputs[0]);
      if (!strides || std::ranges::all_of(*strides, IsOne) || !CanSkipPixels(*node, *strides))
        continue;
      const Value* whole = node->outputs[0];
      SkipPixels(*node, *strides);
      for (Node* reader : fusion_->ReadersOf(whole)) ReadAll(*reader, node->outputs[0]);
    }
  }

 private:
  static bool CanSkipPixels(const Node& node, const Strides& strides) {
    const auto* conv = node.op.As<Conv>();
    if (conv == nullptr || node.direction != Direction::kForward || node.outputs.size() != 1 ||
        conv->geometry.spatial_axes() != kSpatialAxes ||
        Strided(conv->geometry, strides).LeavesOutPixels()) {
      return false;
    }
    const Value& y = *node.outputs[0];
    return y.kind == ValueKind::kActivation && !y.is_kept && !y.must_be_plain;
  }

  // Those that all readers have.
  std::optional<Strides> StridesOfReaders(const Value* value) const {
    std::optional<Strides> common;
    for (const Node* reader : fusion_->ReadersOf(value)) {
      const std::optional<Strides> strides = PixelStrides(*reader, value);
      if (!strides || (common && *common != *strides)) return std::nullopt;
      common = strides;
    }
    return common;
  }

  // The convolution makes every so-maniest pixel of what it has made.
  void SkipPixels(Node& node, const Strides& strides) {
    Conv conv = *node.op.As<Conv>();
    for (const ops::Pointwise& entry : conv.epilogue) {
      if (entry.reads_data()) SamplePixels(node, &node.inputs[entry.operand], strides);
    }
    conv.geometry = Strided(conv.geometry, strides);
    node.op = std::move(conv);
    node.outputs[0].value = &Sampled(*node.outputs[0], strides);
  }

  // What is added to its result: made so, or taken from what is there.
  void SamplePixels(Node& node, Operand* operand, const Strides& strides) {
    Node* writer = fusion_->WriterOf(*operand);
    if (writer != nullptr && fusion_->OnlyReaderOf(*operand) == &node &&
        CanSkipPixels(*writer, strides)) {
      SkipPixels(*writer, strides);
      operand->value = writer->outputs[0];
      return;
    }
    Value& whole = *operand->value;
    operand->value = &Sampled(whole, strides);
    const ops::PoolGeometry geometry{
        .kernel = {1, 1}, .stride = {strides[0], strides[1]}, .rounds_down = true};
    Node& pool = graph_->InsertBefore(node, ops::AvePool{geometry}, {&whole}, {operand->value});
    pool.signature = {operand->dtype,
                      operand->dtype == DType::kDouble ? DType::kDouble : DType::kFloat};
    pool.inputs[0].dtype = pool.outputs[0].dtype = operand->dtype;
  }

  Value& Sampled(const Value& whole, const Strides& strides) {
    Value& value =
        graph_->NewValue(whole.name + ":sampled", SampledShape(whole.desc.shape, strides),
                         whole.desc.dtype, ValueKind::kActivation);
    value.layer = whole.layer;
    value.at_least_float = whole.at_least_float;
    value.sampled_from = &whole;
    return value;
  }

  static void ReadAll(Node& reader, Value* pixels) {
    Conv conv = *reader.op.As<Conv>();
    std::ranges::fill(conv.geometry.stride, 1);
    reader.op = std::move(conv);
    reader.inputs[Conv::kX].value = pixels;
  }

  Graph* graph_ = nullptr;
  std::optional<Fusion> fusion_;
};

std::unique_ptr<Pass> MakeHoistStrides() {
  return std::make_unique<HoistStrides>();
}

}  // namespace caffe::passes
