#include <array>
#include <optional>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/sampling.hpp"

namespace caffe {
namespace {

// Transforms an image by an affine transformation that the net computes (Jaderberg et al. 2015).
// Bottoms: image (N,C,H,W), and for each item the elements of theta, 2 x 3, that are not fixed by
// options; see ops::AffineOp for their meaning.
class SpatialTransformerLayer final : public Layer {
 public:
  explicit SpatialTransformerLayer(const LayerParameter& param)
      : Layer(param), options_(param.st_param()) {
    Require(options_.transform_type() == "affine", "transform_type is '", options_.transform_type(),
            "'; only 'affine' is supported");
    Require(options_.sampler_type() == "bilinear", "sampler_type is '", options_.sampler_type(),
            "'; only 'bilinear' is supported");
    for (const auto& [is_given, size] : {std::pair{options_.has_output_h(), options_.output_h()},
                                         {options_.has_output_w(), options_.output_w()}}) {
      Require(!is_given || size > 0, "output_H or output_W is ", size, "; it must be at least 1");
    }
    Require(Learned() > 0, "all elements of theta are fixed; leave at least one to bottom 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 2, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &image = bottoms[0], &theta = bottoms[1];
    Require(image.num_axes() == 4, "bottom 0 has shape ", image, "; it must be an image N,C,H,W");
    Require(theta.num_axes() >= 2 && theta[0] == image[0] && theta.count(1) == Learned(),
            "bottom 1 has shape ", theta, "; it must hold ", Learned(),
            " elements of theta for each of ", image[0], " items");
    return {Shape{image[0], image[1], options_.has_output_h() ? options_.output_h() : image[2],
                  options_.has_output_w() ? options_.output_w() : image[3]}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::AffineGrid{Affine(graph)}, {graph.bottom(1)}, {Places(graph)});
    graph.Emit(ops::Sample{Sampling(graph)}, {graph.bottom(0), Places(graph)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (options_.to_compute_du()) {
      graph.Emit(ops::SampleGradImage{Sampling(graph)}, {graph.top_diff(0), Places(graph)},
                 {graph.bottom_diff(0)});
    } else {
      graph.Emit(ops::Fill{}, {}, {graph.bottom_diff(0)});
    }
    if (!graph.wants_bottom_diff(1)) return;
    Value* slopes = graph.Saved("slopes", graph.shape(Places(graph)));
    graph.Emit(ops::SampleGradAt{Sampling(graph)},
               {graph.bottom(0), Places(graph), graph.top_diff(0)}, {slopes});
    graph.Emit(ops::AffineGridGrad{Affine(graph)}, {slopes}, {graph.bottom_diff(1)});
  }

 private:
  // The elements of theta that options fix, row by row.
  std::array<std::optional<double>, 6> Fixed() const {
    std::array<std::optional<double>, 6> fixed;
    if (options_.has_theta_1_1()) fixed[0] = options_.theta_1_1();
    if (options_.has_theta_1_2()) fixed[1] = options_.theta_1_2();
    if (options_.has_theta_1_3()) fixed[2] = options_.theta_1_3();
    if (options_.has_theta_2_1()) fixed[3] = options_.theta_2_1();
    if (options_.has_theta_2_2()) fixed[4] = options_.theta_2_2();
    if (options_.has_theta_2_3()) fixed[5] = options_.theta_2_3();
    return fixed;
  }
  int64_t Learned() const {
    int64_t count = 0;
    for (const std::optional<double>& element : Fixed()) count += !element;
    return count;
  }

  ops::AffineOp Affine(GraphBuilder& graph) const {
    const Shape &image = graph.shape(graph.bottom(0)), &top = graph.shape(graph.top(0));
    ops::AffineOp op;
    op.height = static_cast<int>(image[2]);
    op.width = static_cast<int>(image[3]);
    op.rows = static_cast<int>(top[2]);
    op.columns = static_cast<int>(top[3]);
    op.learned = 0;
    const auto fixed = Fixed();
    for (int k = 0; k < 6; ++k) {
      op.operand[k] = fixed[k] ? -1 : op.learned++;
      op.fixed[k] = fixed[k].value_or(0);
    }
    return op;
  }
  ops::SamplingOp Sampling(GraphBuilder& graph) const {
    const Shape &image = graph.shape(graph.bottom(0)), &top = graph.shape(graph.top(0));
    ops::SamplingOp op;
    op.channels = static_cast<int>(image[1]);
    op.height = static_cast<int>(image[2]);
    op.width = static_cast<int>(image[3]);
    op.rows = static_cast<int>(top[2]);
    op.columns = static_cast<int>(top[3]);
    return op;
  }
  // The sampling position of each pixel of the top.
  static Value* Places(GraphBuilder& graph) {
    return graph.Saved("places", graph.shape(graph.top(0)).With(1, 2));
  }

  const SpatialTransformerParameter options_;
};

REGISTER_LAYER_CLASS(SpatialTransformer);

}  // namespace
}  // namespace caffe
