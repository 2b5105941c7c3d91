#include <limits>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/sampling.hpp"

namespace caffe {
namespace {

// Warps an image by a flow (Ilg et al. 2017, "FlowNet 2.0"): each pixel samples the image at its
// own position plus the flow. Bottoms: image (N,C,H,W), flow (N,2,H,W; x, then y, in pixels).
class FlowWarpLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &image = bottoms[0], &flow = bottoms[1];
    Require(image.num_axes() == 4, "bottom 0 has shape ", image, "; it must be an image N,C,H,W");
    Require(flow == image.With(1, 2), "bottom 1 has shape ", flow, "; the flow of ", image,
            " must have shape ", image.With(1, 2));
    return {image};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Sample{Op(graph)}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SampleGradImage{Op(graph)}, {graph.top_diff(0), graph.bottom(1)},
               {graph.bottom_diff(0)});
    graph.Emit(ops::SampleGradAt{Op(graph)}, {graph.bottom(0), graph.bottom(1), graph.top_diff(0)},
               {graph.bottom_diff(1)});
  }

 private:
  ops::SamplingOp Op(GraphBuilder& graph) const {
    const Shape& image = graph.shape(graph.bottom(0));
    ops::SamplingOp op;
    op.channels = static_cast<int>(image[1]);
    op.rows = op.height = static_cast<int>(image[2]);
    op.columns = op.width = static_cast<int>(image[3]);
    op.is_relative = op.repeats_edge = true;
    if (param().flow_warp_param().fill_value() == FlowWarpParameter::NOT_A_NUMBER) {
      op.fill = std::numeric_limits<float>::quiet_NaN();
    }
    return op;
  }
};

REGISTER_LAYER_CLASS(FlowWarp);

}  // namespace
}  // namespace caffe
