#include "caffe/layer_factory.hpp"
#include "caffe/layers/convolution_base.hpp"
#include "caffe/ops/im2col.hpp"

namespace caffe {
namespace {

// The elements covered by a convolution's kernel at each position, as channels.
class Im2colLayer final : public ConvolutionBase {
 public:
  using ConvolutionBase::ConvolutionBase;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    const ops::ConvGeometry geometry = Geometry(bottom);
    const int axis = ChannelAxis(bottom);
    Shape top = bottom;
    for (int i = 0; i < geometry.spatial_axes(); ++i) {
      top = top.With(axis, top[axis] * geometry.kernel[i]);
      top = top.With(axis + 1 + i, geometry.OutputSize(i, bottom[axis + 1 + i]));
    }
    return {top};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* y = FoldedOutput(graph, "y", 0, graph.top(0));
    graph.Emit(ops::Im2col{Geometry(graph.shape(graph.bottom(0)))},
               {FoldedInput(graph, "x", 0, graph.bottom(0))}, {y});
    FinishOutput(graph, y, graph.top(0));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dx = FoldedOutput(graph, "dx", 0, graph.bottom_diff(0));
    graph.Emit(ops::Col2im{Geometry(graph.shape(graph.bottom(0)))},
               {FoldedInput(graph, "dy", 0, graph.top_diff(0))}, {dx});
    FinishOutput(graph, dx, graph.bottom_diff(0));
  }
};

REGISTER_LAYER_CLASS(Im2col, "convolution_param");

}  // namespace
}  // namespace caffe
