#include <algorithm>
#include <cmath>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/resize_base.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pointwise.hpp"

namespace caffe {
namespace {

// Bicubic resizing of OpenPose. The items of a batch are one image at several scales, each with a
// border around it: item n has scale start_scale - n * scale_gap. The top is the mean of the images
// without their borders.
class ImResizeLayer final : public Layer {
 public:
  explicit ImResizeLayer(const LayerParameter& param)
      : Layer(param), options_(param.imresize_param()) {
    const bool has_target =
        options_.target_spatial_height() > 0 && options_.target_spatial_width() > 0;
    Require(options_.factor() > 0 || (options_.factor() == 0 && has_target), "factor is ",
            options_.factor(), ", target_spatial_height ", options_.target_spatial_height(),
            " and target_spatial_width ", options_.target_spatial_width(),
            "; set factor, or both of the others, above 0");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
    Require(bottom[0] > 0, "the bottom has shape ", bottom, "; there must be an item");
    for (int64_t item = 0; item < bottom[0]; ++item) {
      for (const int axis : {2, 3}) {
        const int64_t frame = Frame(item, bottom[axis]);
        Require(frame >= 0 && 2 * frame < bottom[axis], "item ", item, " has scale ",
                1 - FrameShare(item), ", so that a frame of ", frame, " of ", bottom[axis],
                " pixels would be cut off; change start_scale or scale_gap");
      }
    }
    const Shape top{1, bottom[1], TopExtent(bottom[2], options_.target_spatial_height()),
                    TopExtent(bottom[3], options_.target_spatial_width())};
    Require(top[2] > 0 && top[3] > 0, "the top would have ", top[2], "x", top[3],
            " pixels; raise factor");
    for (const int axis : {2, 3}) AxisMatrix::RequireLength(top[axis]);
    return {top};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value *x = graph.bottom(0), *y = graph.top(0);
    const int64_t items = graph.shape(x)[0];
    std::vector<Value*> resized;
    for (int64_t item = 0; item < items; ++item) {
      Value* image = graph.Scratch(StrCat("item", item), graph.shape(x).With(0, 1));
      graph.Emit(ops::SliceOf{.axis = 0, .offset = item}, {x}, {image});
      resized.push_back(graph.Scratch(StrCat("resized", item), graph.shape(y)));
      Value* half =
          graph.Scratch(StrCat("half", item), graph.shape(image).With(2, graph.shape(y)[2]));
      Filter(graph, item, 2).Emit(graph, StrCat("rows", item), 2, image, half);
      Filter(graph, item, 3).Emit(graph, StrCat("columns", item), 3, half, resized.back());
    }
    const std::vector<float> shares(items, 1 / static_cast<float>(items));
    graph.Emit(ops::EltwiseSum{.coefficients = shares}, resized, {y});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!graph.wants_bottom_diff(0)) return;
    const Shape x = graph.shape(graph.bottom(0)), y = graph.shape(graph.top(0));
    Value* share = graph.Scratch("dshare", y);
    graph.Emit(ops::ScaleBy{1 / static_cast<double>(x[0])}, {graph.top_diff(0)}, {share});
    std::vector<Value*> images;
    for (int64_t item = 0; item < x[0]; ++item) {
      Value* half = graph.Scratch(StrCat("dhalf", item), y.With(2, x[2]));
      images.push_back(graph.Scratch(StrCat("ditem", item), x.With(0, 1)));
      Filter(graph, item, 2).Transposed().Emit(graph, StrCat("drows", item), 2, share, half);
      Filter(graph, item, 3)
          .Transposed()
          .Emit(graph, StrCat("dcolumns", item), 3, half, images.back());
    }
    graph.Emit(ops::Concat{.axis = 0}, images, {graph.bottom_diff(0)});
  }

 private:
  int64_t TopExtent(int64_t bottom, int64_t target) const {
    if (options_.factor() == 0) return target;
    return ScaledExtent(bottom, options_.factor());
  }
  double FrameShare(int64_t item) const {
    return 1 - static_cast<double>(options_.start_scale()) +
           static_cast<double>(item) * options_.scale_gap();
  }
  // Border pixels on each side; -1 or `extent` if no image can have so few or so many.
  int64_t Frame(int64_t item, int64_t extent) const {
    const double frame = std::floor(static_cast<double>(extent / 2) * FrameShare(item));
    if (!(frame >= 0)) return -1;  // also for NaN
    return static_cast<int64_t>(std::min(frame, static_cast<double>(extent)));
  }

  // Catmull-Rom weights of four neighbours; beyond the border, the border pixel is used. To the
  // left of the first pixel's centre, the curve of the first two pixels is continued, as in
  // OpenPose.
  AxisMatrix Filter(GraphBuilder& graph, int64_t item, int axis) const {
    const int64_t extent = graph.shape(graph.bottom(0))[axis];
    const int64_t outputs = graph.shape(graph.top(0))[axis];
    const int64_t frame = Frame(item, extent), last = extent - 2 * frame - 1;
    const double pixel = static_cast<double>(last + 1) / static_cast<double>(outputs);
    AxisMatrix filter(extent);
    for (int64_t output = 0; output < outputs; ++output) {
      const double position = (static_cast<double>(output) + 0.5) * pixel - 0.5;
      const int64_t left = std::max<int64_t>(0, static_cast<int64_t>(position + 1e-5));
      const double d = position - static_cast<double>(left);
      const auto at = [&](int64_t place) { return frame + std::clamp<int64_t>(place, 0, last); };
      filter.AddRow({{at(left - 1), ((-0.5 * d + 1) * d - 0.5) * d},
                     {at(left), (1.5 * d - 2.5) * d * d + 1},
                     {at(left + 1), ((-1.5 * d + 2) * d + 0.5) * d},
                     {at(left + 2), (0.5 * d - 0.5) * d * d}});
    }
    return filter;
  }

  const ImResizeParameter options_;
};

REGISTER_LAYER_CLASS(ImResize);

}  // namespace
}  // namespace caffe
