#include <algorithm>
#include <limits>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/correlation.hpp"

namespace caffe {
namespace {

// How alike the patches of two images are at displacements, a channel each (FlowNet).
class CorrelationLayer final : public Layer {
 public:
  explicit CorrelationLayer(const LayerParameter& param)
      : Layer(param), options_(param.correlation_param()) {
    Require(options_.has_kernel_size() && options_.kernel_size() % 2 == 1, "kernel_size is ",
            options_.kernel_size(), "; it must be given and odd");
    Require(options_.has_max_displacement(), "max_displacement is missing");
    for (const int64_t stride : {options_.stride_1(), options_.stride_2()}) {
      Require(stride > 0 && stride <= kMost, "stride_1 and stride_2 are ", options_.stride_1(),
              " and ", options_.stride_2(), "; both must be in 1..", kMost);
    }
    // Displacements are counted in an int: its root.
    const int64_t side = int64_t{options_.max_displacement()} / options_.stride_2() * 2 + 1;
    Require(side <= 46340, "max_displacement ", options_.max_displacement(), " and stride_2 ",
            options_.stride_2(), " make ", side,
            " displacements on each axis; there may be at most 46340");
    if (options_.do_abs()) {
      throw Unsupported("do_abs: true is not supported; add an AbsVal layer after this one");
    }
    if (options_.single_direction() != 0) {
      throw Unsupported("single_direction belongs to Correlation1D, which is not supported");
    }
  }

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() == 4 && bottoms[0] == bottoms[1], "the bottoms have shapes ",
            bottoms[0], " and ", bottoms[1], "; they must be equal and N,C,H,W");
    RequireCounts(bottoms[0]);
    const ops::CorrelationOp op = Op(bottoms[0]);
    Require(op.rows > 0 && op.columns > 0, "max_displacement ", options_.max_displacement(),
            " and kernel_size ", options_.kernel_size(), " do not fit into images of ", op.height,
            " x ", op.width, " with pad ", op.pad);
    return {Shape{bottoms[0][0], op.displacements(), op.rows, op.columns}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Correlation{Op(graph.shape(graph.bottom(0)))},
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    for (const int i : {0, 1}) {
      graph.Emit(ops::CorrelationGrad(Op(graph.shape(graph.bottom(0))), i == 1),
                 {graph.bottom(0), graph.bottom(1), graph.top_diff(0)}, {graph.bottom_diff(i)});
    }
  }

 private:
  static constexpr int64_t kMost = std::numeric_limits<int>::max();  // kernels count in int

  void RequireCounts(const Shape& image) const {
    const int64_t pad = options_.pad(), kernel = options_.kernel_size();
    Require(std::max(image[2], image[3]) + 2 * pad <= kMost, "pad ", pad, " and images of ",
            image[2], " x ", image[3], " make more than ", kMost, " rows or columns");
    Require(kernel <= kMost && kernel * kernel <= kMost / std::max<int64_t>(image[1], 1),
            "kernel_size ", kernel, " and ", image[1], " channels make patches of more than ",
            kMost, " elements");
  }

  ops::CorrelationOp Op(const Shape& image) const {
    ops::CorrelationOp op;
    op.channels = static_cast<int>(image[1]);
    op.height = static_cast<int>(image[2]);
    op.width = static_cast<int>(image[3]);
    op.pad = static_cast<int>(options_.pad());
    op.kernel = static_cast<int>(options_.kernel_size());
    op.reach = static_cast<int>(options_.max_displacement());
    op.stride_1 = static_cast<int>(options_.stride_1());
    op.stride_2 = static_cast<int>(options_.stride_2());
    op.subtracts = options_.correlation_type() == CorrelationParameter::SUBTRACT;
    // Patches that stay inside at every displacement, half a kernel beside its middle.
    const int64_t margin =
        2 * (int64_t{options_.pad()} - options_.max_displacement()) - (op.kernel - 1);
    const auto size = [&](int extent) {
      const int64_t places = extent + margin;
      return places <= 0 ? 0 : static_cast<int>((places - 1) / op.stride_1 + 1);
    };
    op.rows = size(op.height);
    op.columns = size(op.width);
    return op;
  }

  const CorrelationParameter options_;
};

REGISTER_LAYER_CLASS(Correlation);

}  // namespace
}  // namespace caffe
