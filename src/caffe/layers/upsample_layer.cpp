#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/resize_base.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe {
namespace {

// With one bottom, repeats each pixel (YOLO). With two, where bottom 1 is the mask of a max
// pooling, moves each value to the position of its maximum, with zeros elsewhere (SegNet).
class UpsampleLayer final : public ResizeBase {
 public:
  explicit UpsampleLayer(const LayerParameter& param)
      : ResizeBase(param), options_(param.upsample_param()) {
    Require(options_.has_upsample_h() == options_.has_upsample_w(),
            "has only one of upsample_h and upsample_w; give both");
    Require(options_.has_scale_h() == options_.has_scale_w() &&
                !(options_.has_scale() && options_.has_scale_h()),
            "needs scale, or scale_h and scale_w, but not both");
    for (const int axis : {0, 1}) {
      Require(Scale()[axis] > 0, "the scale must be at least 1, got ", Scale()[axis]);
      Require(!Pad()[axis] || Scale()[axis] == 2, axis == 0 ? "pad_out_h" : "pad_out_w",
              " needs a scale of 2, got ", Scale()[axis]);
    }
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    if (has_mask()) {
      Require(bottoms[0] == bottoms[1], "the bottoms have shapes ", bottoms[0], " and ", bottoms[1],
              "; a mask names a place for each element of bottom 0, so they must be equal");
    }
    return ResizeBase::InferTopShapes(bottoms);
  }

  void EmitForward(GraphBuilder& graph) const override {
    if (!has_mask()) return ResizeBase::EmitForward(graph);
    graph.Emit(ops::Unpool{}, {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!has_mask()) return ResizeBase::EmitBackward(graph);
    graph.Emit(ops::UnpoolGrad{}, {graph.top_diff(0), graph.bottom(1)}, {graph.bottom_diff(0)});
  }

 private:
  bool has_mask() const { return param().bottom_size() == 2; }

  ImageSize Scale() const {
    if (options_.has_scale_h()) return {options_.scale_h(), options_.scale_w()};
    return {options_.scale(), options_.scale()};
  }
  std::array<bool, 2> Pad() const { return {options_.pad_out_h(), options_.pad_out_w()}; }

  ImageSize TopSize(const std::vector<Shape>& bottoms) const override {
    if (options_.has_upsample_h()) return {options_.upsample_h(), options_.upsample_w()};
    return {bottoms[0][2] * Scale()[0] - Pad()[0], bottoms[0][3] * Scale()[1] - Pad()[1]};
  }

  AxisMatrix Filter(int axis, const ImageSize& from, const ImageSize& to) const override {
    AxisMatrix repeated(from[axis]);
    for (int64_t output = 0; output < to[axis]; ++output) {
      const int64_t place =
          options_.has_upsample_h() ? output * from[axis] / to[axis] : output / Scale()[axis];
      repeated.AddRow({{place, 1}});
    }
    return repeated;
  }

  const UpsampleParameter options_;
};

REGISTER_LAYER_CLASS(Upsample);

}  // namespace
}  // namespace caffe
