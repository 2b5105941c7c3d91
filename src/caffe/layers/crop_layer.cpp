#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe {
namespace {

// Crops bottom 0 to the extents of bottom 1 along all axes from `axis` on, at `offset`.
class CropLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    Require(bottoms[1].num_axes() == bottoms[0].num_axes(), "the bottoms have shapes ", bottoms[0],
            " and ", bottoms[1], "; they must have the same number of axes");
    const std::vector<int64_t> offsets = Offsets(bottoms[0]);
    Shape top = bottoms[0];
    for (int i = axis; i < top.num_axes(); ++i) {
      Require(offsets[i] + bottoms[1][i] <= bottoms[0][i], "offset ", offsets[i], " + size ",
              bottoms[1][i], " goes beyond the ", bottoms[0][i], " elements of axis ", i,
              "; lower the offset, or crop to a smaller second bottom");
      top = top.With(i, bottoms[1][i]);
    }
    return {top};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Crop{Offsets(graph.shape(graph.bottom(0)))}, {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::CropGrad{Offsets(graph.shape(graph.bottom(0)))}, {graph.top_diff(0)},
               {graph.bottom_diff(0)});
  }

  // Only the shape of bottom 1 is used.
  bool AllowForceBackward(int bottom) const override { return bottom == 0; }

 private:
  int Axis(const Shape& bottom) const { return bottom.CanonicalAxis(param().crop_param().axis()); }

  // One offset per axis; those before `axis` are 0.
  std::vector<int64_t> Offsets(const Shape& bottom) const {
    const auto& given = param().crop_param().offset();
    const int axis = Axis(bottom), cropped = bottom.num_axes() - axis;
    Require(given.size() <= 1 || given.size() == cropped, "offset is given ", given.size(),
            " times for ", cropped, " cropped axes; give it once or once per axis");
    std::vector<int64_t> offsets(bottom.num_axes(), 0);
    for (int i = 0; i < cropped && !given.empty(); ++i) {
      offsets[axis + i] = given[given.size() == 1 ? 0 : i];
    }
    return offsets;
  }
};

REGISTER_LAYER_CLASS(Crop);

}  // namespace
}  // namespace caffe
