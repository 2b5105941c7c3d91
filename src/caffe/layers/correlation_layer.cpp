#include <algorithm>

#include "caffe/core/saturating_product.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/activations.hpp"
#include "caffe/ops/correlation.hpp"
#include "caffe/ops/window.hpp"

namespace caffe {
namespace {

// Similarity of the patches of two images at displacements, one channel each (FlowNet,
// github.com/lmb-freiburg/flownet2). Correlation1D displaces and pads only along rows, to both
// sides or to one (Mayer et al. 2016, "A large dataset to train convolutional networks for
// disparity, optical flow, and scene flow estimation").
class CorrelationLayer final : public Layer {
 public:
  explicit CorrelationLayer(const LayerParameter& param)
      : Layer(param),
        options_(param.correlation_param()),
        is_along_rows_(param.type() == "Correlation1D") {
    Require(options_.has_kernel_size() && options_.kernel_size() % 2 == 1, "kernel_size is ",
            options_.kernel_size(), "; it must be given and odd");
    Require(options_.has_max_displacement(), "max_displacement is missing");
    for (const int64_t stride : {options_.stride_1(), options_.stride_2()}) {
      Require(stride > 0 && stride <= ops::kMostPlaces, "stride_1 and stride_2 are ",
              options_.stride_1(), " and ", options_.stride_2(), "; both must be in 1..",
              ops::kMostPlaces);
    }
    // The number of displacements must fit into an int, so this limits its square root.
    const int64_t side = int64_t{options_.max_displacement()} / options_.stride_2() * 2 + 1;
    Require(side <= 46340, "max_displacement ", options_.max_displacement(), " and stride_2 ",
            options_.stride_2(), " make ", side,
            " displacements on each axis; there may be at most 46340");
    const int direction = options_.single_direction();
    Require(direction >= -1 && direction <= 1, "single_direction is ", direction,
            "; it must be -1 (left), 0 (both) or 1 (right)");
    Require(direction == 0 || is_along_rows_, "single_direction is ", direction,
            " and the type is Correlation; only type: 'Correlation1D' has a single direction");
  }

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() == 4 && bottoms[0] == bottoms[1], "the bottoms have shapes ",
            bottoms[0], " and ", bottoms[1], "; they must be equal and N,C,H,W");
    RequireCounts(bottoms[0]);
    const ops::CorrelationOp op = Op(bottoms[0]);
    Require(op.rows > 0 && op.columns > 0, "max_displacement ", options_.max_displacement(),
            " and kernel_size ", options_.kernel_size(), " do not fit into images of ", op.height,
            " x ", op.width, " with pad ", options_.pad());
    return {Shape{bottoms[0][0], op.displacements(), op.rows, op.columns}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* sums = Sums(graph);
    graph.Emit(ops::Correlation{OpOf(graph)}, {graph.bottom(0), graph.bottom(1)}, {sums});
    if (options_.do_abs()) graph.Emit(ops::Abs{}, {sums}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dsums = graph.top_diff(0);
    if (options_.do_abs()) {
      dsums = graph.Scratch("dsums", graph.shape(graph.top(0)));
      graph.Emit(ops::AbsGrad{}, {Sums(graph), graph.top_diff(0)}, {dsums});
    }
    for (const int i : {0, 1}) {
      graph.Emit(ops::CorrelationGrad(OpOf(graph), i == 1),
                 {graph.bottom(0), graph.bottom(1), dsums}, {graph.bottom_diff(i)});
    }
  }

 private:
  // Kernels count positions, including displaced ones, and the elements of a patch in int.
  void RequireCounts(const Shape& image) const {
    const int64_t kernel = options_.kernel_size(), steps = options_.stride_2();
    const ops::Window window{
        .kernel = kernel, .stride = options_.stride_1(), .pad = options_.pad()};
    const int64_t rows = window.Padded("height", image[2]);
    const int64_t padded = std::max(rows, window.Padded("width", image[3]));
    const int64_t farthest = (options_.max_displacement() / steps + 1) * steps;
    Require(padded + farthest <= ops::kMostPlaces, "max_displacement ", options_.max_displacement(),
            " in steps of stride_2 ", steps, " leads ", farthest, " places from one of ", padded,
            "; together there may be at most ", ops::kMostPlaces);
    Require(SaturatingProduct({kernel, kernel, std::max<int64_t>(image[1], 1)}) <= ops::kMostPlaces,
            "kernel_size ", kernel, " and ", image[1], " channels make patches of more than ",
            ops::kMostPlaces, " elements");
  }

  // The sums before do_abs.
  Value* Sums(GraphBuilder& graph) const {
    return options_.do_abs() ? graph.Saved("sums", graph.shape(graph.top(0))) : graph.top(0);
  }

  ops::CorrelationOp OpOf(GraphBuilder& graph) const { return Op(graph.shape(graph.bottom(0))); }

  ops::CorrelationOp Op(const Shape& image) const {
    ops::CorrelationOp op;
    op.channels = static_cast<int>(image[1]);
    op.height = static_cast<int>(image[2]);
    op.width = static_cast<int>(image[3]);
    op.kernel = static_cast<int>(options_.kernel_size());
    op.stride_1 = static_cast<int>(options_.stride_1());
    op.stride_2 = static_cast<int>(options_.stride_2());
    op.subtracts = options_.correlation_type() == CorrelationParameter::SUBTRACT;
    op.axes[1] = Displaced(options_.single_direction());
    if (!is_along_rows_) op.axes[0] = op.axes[1];
    // The part of an axis that remains with all displacements.
    const int64_t margin = 2 * (int64_t{options_.pad()} - options_.max_displacement());
    op.rows = Places(op.height + (is_along_rows_ ? 0 : margin));
    op.columns = Places(op.width + margin);
    return op;
  }

  // To the left, FlowNet omits displacement 0, so one displacement exceeds max_displacement.
  ops::CorrelationOp::Axis Displaced(int direction) const {
    const int radius = static_cast<int>(options_.max_displacement() / options_.stride_2());
    return {.pad = static_cast<int>(options_.pad()),
            .reach = static_cast<int>(options_.max_displacement()),
            .first = direction < 0   ? -radius - 1
                     : direction > 0 ? 0
                                     : -radius,
            .count = direction == 0 ? 2 * radius + 1 : radius + 1};
  }

  // Number of patches that stay inside; they extend half a kernel beyond their centres.
  int Places(int64_t extent) const {
    const int64_t places = extent - (int64_t{options_.kernel_size()} - 1);
    return places <= 0 ? 0 : static_cast<int>((places - 1) / options_.stride_1() + 1);
  }

  const CorrelationParameter options_;
  const bool is_along_rows_;
};

using Correlation1DLayer = CorrelationLayer;

REGISTER_LAYER_CLASS(Correlation);
REGISTER_LAYER_CLASS(Correlation1D, "correlation_param");

}  // namespace
}  // namespace caffe
