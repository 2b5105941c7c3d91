#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {
namespace {

// Splits its bottom along `axis` (old files: slice_dim) at the slice points, or into equal parts.
class SliceLayer final : public Layer {
 public:
  explicit SliceLayer(const LayerParameter& param) : Layer(param), options_(param.slice_param()) {
    Require(!options_.has_axis() || !options_.has_slice_dim(),
            "has both axis and the old slice_dim; give one");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .min_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    const std::vector<int64_t> offsets = Offsets(bottoms[0]);
    std::vector<Shape> tops;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      tops.push_back(bottoms[0].With(axis, offsets[i + 1] - offsets[i]));
    }
    return tops;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Shape& bottom = graph.shape(graph.bottom(0));
    const std::vector<int64_t> offsets = Offsets(bottom);
    for (int i = 0; i < graph.num_tops(); ++i) {
      graph.Emit(ops::SliceOf{.axis = Axis(bottom), .offset = offsets[i]}, {graph.bottom(0)},
                 {graph.top(i)});
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    std::vector<Value*> gradients;
    for (int i = 0; i < graph.num_tops(); ++i) gradients.push_back(graph.top_diff(i));
    graph.Emit(ops::Concat{.axis = Axis(graph.shape(graph.bottom(0)))}, gradients,
               {graph.bottom_diff(0)});
  }

 private:
  int Axis(const Shape& bottom) const {
    if (!options_.has_slice_dim()) return bottom.CanonicalAxis(options_.axis());
    Require(options_.slice_dim() < kMaxAxes, "slice_dim is ", options_.slice_dim(),
            "; it must be an axis of shape ", bottom);
    return bottom.CanonicalAxis(static_cast<int>(options_.slice_dim()));
  }

  // Start of each part, then the end.
  std::vector<int64_t> Offsets(const Shape& bottom) const {
    const int64_t extent = bottom[Axis(bottom)];
    const int num_tops = param().top_size();
    std::vector<int64_t> offsets = {0};
    if (options_.slice_point_size() == 0) {
      Require(extent % num_tops == 0, "cannot cut an extent of ", extent, " into ", num_tops,
              " equal parts; give slice_point");
      for (int i = 1; i < num_tops; ++i) offsets.push_back(extent / num_tops * i);
    } else {
      Require(options_.slice_point_size() == num_tops - 1, "has ", options_.slice_point_size(),
              " slice points for ", num_tops, " tops; give one less than tops");
      for (const int64_t point : options_.slice_point()) {
        Require(offsets.back() < point && point < extent, "slice point ", point, " must lie after ",
                offsets.back(), " and before ", extent);
        offsets.push_back(point);
      }
    }
    offsets.push_back(extent);
    return offsets;
  }

  const SliceParameter options_;
};

REGISTER_LAYER_CLASS(Slice);

}  // namespace
}  // namespace caffe
