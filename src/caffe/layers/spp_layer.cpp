#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe {
namespace {

// Spatial pyramid pooling (He et al. 2014): level i pools the image into 2^i x 2^i bins; the levels
// are flattened and concatenated. A pyramid of height 1 keeps the shape of its pooled level.
class SPPLayer final : public Layer {
 public:
  explicit SPPLayer(const LayerParameter& param) : Layer(param), options_(param.spp_param()) {
    Require(options_.pyramid_height() >= 1, "pyramid_height is missing; set it to at least 1");
    Require(options_.pyramid_height() <= kMostLevels, "pyramid_height is ",
            options_.pyramid_height(), "; it may be at most ", kMostLevels,
            ", whose last level has 2^30 bins along an axis");
    Require(options_.pool() != SPPParameter::STOCHASTIC, "pool is STOCHASTIC; use MAX or AVE");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ",
            bottoms[0]);
    if (height() == 1) return {PooledShape(bottoms[0], 0)};
    int64_t columns = 0;
    for (int level = 0; level < height(); ++level) {
      columns += PooledShape(bottoms[0], level).count(1);
    }
    return {Shape{bottoms[0][0], columns}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Shape& bottom = graph.shape(graph.bottom(0));
    std::vector<Value*> parts;
    for (int level = 0; level < height(); ++level) {
      Value* pooled = height() == 1
                          ? graph.top(0)
                          : graph.Scratch(StrCat("level", level), PooledShape(bottom, level));
      EmitPool(graph, level, pooled);
      if (height() == 1) return;
      parts.push_back(graph.Scratch(StrCat("flat", level), Flat(graph.shape(pooled))));
      graph.Emit(ops::View{}, {pooled}, {parts.back()});
    }
    graph.Emit(ops::Concat{.axis = 1}, parts, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!graph.wants_bottom_diff(0)) return;
    const Shape& bottom = graph.shape(graph.bottom(0));
    std::vector<Value*> gradients;
    int64_t offset = 0;
    for (int level = 0; level < height(); ++level) {
      const Shape pooled = PooledShape(bottom, level);
      Value* dy = graph.top_diff(0);
      if (height() > 1) {
        Value* flat = graph.Scratch(StrCat("dflat", level), Flat(pooled));
        graph.Emit(ops::SliceOf{.axis = 1, .offset = offset}, {graph.top_diff(0)}, {flat});
        dy = graph.Scratch(StrCat("dlevel", level), pooled);
        graph.Emit(ops::View{}, {flat}, {dy});
        offset += pooled.count(1);
      }
      Value* dx = height() == 1 ? graph.bottom_diff(0) : graph.Scratch(StrCat("dx", level), bottom);
      const ops::PoolGeometry geometry = Geometry(bottom, level);
      if (is_max()) {
        graph.Emit(ops::MaxPoolGrad{geometry}, {Mask(graph, level), dy}, {dx});
      } else {
        graph.Emit(ops::AvePoolGrad{geometry}, {dy}, {dx});
      }
      gradients.push_back(dx);
    }
    if (height() > 1) graph.Emit(ops::EltwiseSum{}, gradients, {graph.bottom_diff(0)});
  }

 private:
  static constexpr uint32_t kMostLevels = 31;

  int height() const { return static_cast<int>(options_.pyramid_height()); }
  bool is_max() const { return options_.pool() == SPPParameter::MAX; }

  // Windows that tile the image; the excess of their total size is padding on both sides.
  static ops::PoolGeometry Geometry(const Shape& bottom, int level) {
    ops::PoolGeometry geometry;
    const int64_t bins = int64_t{1} << level;
    for (const int axis : {0, 1}) {
      const int64_t extent = bottom[2 + axis];
      const int64_t kernel = (extent + bins - 1) / bins;
      geometry.kernel[axis] = geometry.stride[axis] = kernel;
      geometry.pad[axis] = (kernel * bins - extent + 1) / 2;
      Require(geometry.pad[axis] < kernel, "a pyramid level of ", bins, " x ", bins,
              " bins does not fit an image of shape ", bottom, "; lower pyramid_height");
    }
    return geometry;
  }
  static Shape PooledShape(const Shape& bottom, int level) {
    const ops::PoolGeometry geometry = Geometry(bottom, level);
    return Shape{bottom[0], bottom[1], geometry.OutputSize(0, bottom[2]),
                 geometry.OutputSize(1, bottom[3])};
  }
  static Shape Flat(const Shape& shape) { return Shape{shape[0], shape.count(1)}; }

  Value* Mask(GraphBuilder& graph, int level) const {
    return graph.Saved(StrCat("mask", level), PooledShape(graph.shape(graph.bottom(0)), level));
  }

  void EmitPool(GraphBuilder& graph, int level, Value* pooled) const {
    const ops::PoolGeometry geometry = Geometry(graph.shape(graph.bottom(0)), level);
    if (!is_max()) {
      graph.Emit(ops::AvePool{geometry}, {graph.bottom(0)}, {pooled});
      return;
    }
    std::vector<Value*> outputs = {pooled};
    if (graph.with_backward()) outputs.push_back(Mask(graph, level));
    graph.Emit(ops::MaxPool{geometry}, {graph.bottom(0)}, outputs);
  }

  const SPPParameter options_;
};

REGISTER_LAYER_CLASS(SPP);

}  // namespace
}  // namespace caffe
