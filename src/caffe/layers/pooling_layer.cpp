#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/pool.hpp"

namespace caffe {
namespace {

// Maximum, average or (in training) a random element of each window of the image. Top 1 (MAX only)
// contains the positions of the maxima.
class PoolingLayer final : public Layer {
 public:
  explicit PoolingLayer(const LayerParameter& param)
      : Layer(param), options_(param.pooling_param()) {
    Require(!is_stochastic() || (Pad()[0] == 0 && Pad()[1] == 0),
            "pool: STOCHASTIC knows no padding; set pad: 0");
    RequireOneForm("pad", options_.has_pad(), options_.has_pad_h(), options_.has_pad_w());
    RequireOneForm("stride", options_.has_stride(), options_.has_stride_h(),
                   options_.has_stride_w());
    Require(!options_.has_round_mode() || !options_.has_ceil_mode() ||
                options_.ceil_mode() == (options_.round_mode() == PoolingParameter::CEIL),
            "round_mode is ", PoolingParameter::RoundMode_Name(options_.round_mode()),
            " and ceil_mode ", options_.ceil_mode() ? "true" : "false",
            ", which contradict each other; leave out one");
    const bool has_square = options_.has_kernel_size();
    const bool has_rectangle = options_.has_kernel_h() && options_.has_kernel_w();
    if (options_.global_pooling()) {
      Require(!has_square && !options_.has_kernel_h() && !options_.has_kernel_w(),
              "global_pooling takes the kernel from the input; leave out kernel_size");
      Require(Pad()[0] == 0 && Pad()[1] == 0 && Stride()[0] == 1 && Stride()[1] == 1,
              "global_pooling needs pad 0 and stride 1");
      return;
    }
    Require(has_square != has_rectangle,
            "needs kernel_size, or kernel_h and kernel_w, but not both");
    Geometry(Shape{1, 1, 1, 1}).Check();
  }

  LayerTraits traits() const override {
    return {.num_bottoms = 1, .min_tops = 1, .max_tops = is_max() ? 2 : 1};
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", bottom);
    const ops::PoolGeometry geometry = Geometry(bottom);
    const Shape top{bottom[0], bottom[1], geometry.OutputSize(0, bottom[2]),
                    geometry.OutputSize(1, bottom[3])};
    return std::vector<Shape>(param().top_size(), top);
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::PoolGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    Value *x = graph.bottom(0), *y = graph.top(0);
    std::vector<Value*> tops = {y};
    if (draws() || is_max()) {
      if (graph.num_tops() > 1 || graph.with_backward()) tops.push_back(Mask(graph));
    }
    if (is_max()) {
      graph.Emit(ops::MaxPool{geometry}, {x}, tops);
    } else if (draws()) {
      graph.Emit(ops::StochasticPool{.geometry = geometry, .stream = StreamOf(name())}, {x}, tops);
    } else if (is_stochastic()) {
      graph.Emit(ops::StochasticPoolMean{geometry}, {x}, tops);
    } else {
      graph.Emit(ops::AvePool{geometry}, {x}, tops);
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const ops::PoolGeometry geometry = Geometry(graph.shape(graph.bottom(0)));
    if (is_max() || draws()) {
      graph.Emit(ops::MaxPoolGrad{geometry}, {Mask(graph), graph.top_diff(0)},
                 {graph.bottom_diff(0)});
    } else if (is_stochastic()) {
      graph.Emit(ops::StochasticPoolMeanGrad{geometry},
                 {graph.bottom(0), graph.top(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
    } else {
      graph.Emit(ops::AvePoolGrad{geometry}, {graph.top_diff(0)}, {graph.bottom_diff(0)});
    }
  }

 private:
  bool is_max() const { return options_.pool() == PoolingParameter::MAX; }
  // Stochastic pooling draws in training and averages in testing.
  bool is_stochastic() const { return options_.pool() == PoolingParameter::STOCHASTIC; }
  bool draws() const { return is_stochastic() && phase() == TRAIN; }

  static constexpr int64_t kMostPixels = int64_t{1} << 24;  // floats represent these exactly

  // A mask in a top contains numbers for the caller; any other is read only by backward, in its own
  // form.
  Value* Mask(GraphBuilder& graph) const {
    if (graph.num_tops() > 1) return graph.top(1);
    const Shape& bottom = graph.shape(graph.bottom(0));
    const bool fits = is_max() && Geometry(bottom).fits_byte_mask();
    Require(fits || bottom.count(2) <= kMostPixels,
            "gradients of windows with more than 255 places "
            "need a number for each pixel of shape ",
            bottom, "; there may be at most ", kMostPixels);
    return graph.Saved("mask", graph.shape(graph.top(0)), fits ? SavedAs::kBytes : SavedAs::kExact);
  }

  // A second spelling would be ignored silently, and half of one would be 0 on the other axis.
  static void RequireOneForm(const char* field, bool has_square, bool has_h, bool has_w) {
    Require(has_h == has_w && !(has_square && has_h), "needs ", field, ", or ", field, "_h and ",
            field, "_w, but not both");
  }

  std::array<int64_t, 2> Pad() const {
    if (!options_.has_pad_h() && !options_.has_pad_w()) return {options_.pad(), options_.pad()};
    return {options_.pad_h(), options_.pad_w()};
  }

  std::array<int64_t, 2> Stride() const {
    if (!options_.has_stride_h() && !options_.has_stride_w())
      return {options_.stride(), options_.stride()};
    return {options_.stride_h(), options_.stride_w()};
  }

  ops::PoolGeometry Geometry(const Shape& bottom) const {
    ops::PoolGeometry geometry{.stride = Stride(), .pad = Pad()};
    geometry.rounds_down =
        options_.round_mode() == PoolingParameter::FLOOR || !options_.ceil_mode();
    if (options_.global_pooling()) {
      geometry.kernel = {bottom[2], bottom[3]};
    } else if (options_.has_kernel_size()) {
      geometry.kernel = {options_.kernel_size(), options_.kernel_size()};
    } else {
      geometry.kernel = {options_.kernel_h(), options_.kernel_w()};
    }
    return geometry;
  }

  const PoolingParameter options_;
};

REGISTER_LAYER_CLASS(Pooling);

}  // namespace
}  // namespace caffe
