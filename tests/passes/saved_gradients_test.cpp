// Losses that compute their gradient in forward save it in float and scale it in backward: the step
// that scales read it as 16-bit numbers if its result is in 16 bits. Layers of others scale it with
// ScaleShift.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "caffe/blob.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/net.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "tests/support/blob_values.hpp"
#include "tests/support/net_of.hpp"

namespace caffe {
namespace {

std::string ShapedInput(const std::string& name, const std::string& dims) {
  return StrCat("layer { name: '", name, "' type: 'Input' top: '", name, "' input_param { shape { ",
                dims, " } } } ");
}
// A blob that is stored in the net's type.
std::string CopyOf(const std::string& bottom, const std::string& top) {
  return StrCat("layer { name: '", top, "' type: 'Power' bottom: '", bottom, "' top: '", top,
                "' } ");
}

std::vector<float> Waves(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(std::sin(static_cast<float>(i * i)));
  return values;
}

// The sum of the squares, whose gradient forward computes.
class SavedSquaresLayer final : public Layer {
 public:
  using Layer::Layer;
  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1, .is_loss = true}; }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override { return {Shape{}}; }
  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::HostCall{.what = "squares", .call = Run}, {graph.bottom(0)},
               {graph.top(0), Gradient(graph)});
  }
  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::ScaleShift{{.axis = 0, .num_axes = 0}}, {Gradient(graph), graph.top_diff(0)},
               {graph.bottom_diff(0)});
  }

 private:
  static Value* Gradient(GraphBuilder& graph) {
    return graph.Saved("gradient", graph.shape(graph.bottom(0)));
  }
  static void Run(const KernelContext& ctx) {
    std::vector<double> x(static_cast<size_t>(ctx.input(0).count()));
    const TensorDesc doubles{ctx.input(0).shape, DType::kDouble, Layout::kPlain};
    CopyTensor(ctx.input(0), {doubles, x.data()});
    double sum = 0;
    for (double& value : x) sum += value * value, value *= 2;
    CopyTensor({{Shape{}, DType::kDouble, Layout::kPlain}, &sum}, ctx.output(0));
    CopyTensor({doubles, x.data()}, ctx.output(1));
  }
};
REGISTER_LAYER_CLASS(SavedSquares);

using Blobs = std::vector<std::pair<std::string, std::vector<float>>>;

// Expects the gradient of `blob` in 16 bits to equal that in float, except for rounding.
void ExpectGradientOfFloats(const std::string& layers, const Blobs& blobs,
                            const std::string& blob) {
  const auto gradient = [&](Precision precision) {
    Net net(testing::ParseNet("force_backward: true " + layers), {.precision = precision});
    for (const auto& [name, values] : blobs) testing::Set(net, name, values);
    net.Forward();
    net.Backward();
    const Blob& of = *net.blob_by_name(blob);
    return std::vector<float>(of.cpu_diff(), of.cpu_diff() + of.count());
  };
  const std::vector<float> want = gradient(FP32);
  for (const Precision precision : {BF16, FP16})
    EXPECT_LT(testing::MostDifferent(want, gradient(precision)), 0.03F)
        << Precision_Name(precision) << ", " << blob;
}

TEST(SavedGradientsTest, MultiBoxLoss) {
  std::vector<float> priors = {0,    0,    0.4F, 0.4F, 0.5F, 0,    0.9F, 0.4F,
                               0.0F, 0.5F, 0.4F, 0.9F, 0.5F, 0.5F, 0.9F, 0.9F};
  priors.resize(32, 0.1F);
  const std::string layers =
      ShapedInput("x", "dim: 1 dim: 16") + ShapedInput("z", "dim: 1 dim: 8") +
      ShapedInput("prior", "dim: 1 dim: 2 dim: 16") +
      ShapedInput("gt", "dim: 1 dim: 1 dim: 1 dim: 8") + CopyOf("x", "loc") + CopyOf("z", "conf") +
      "layer { name: 'l' type: 'MultiBoxLoss' bottom: 'loc' bottom: 'conf' bottom: 'prior' bottom: "
      "'gt' top: 'l' propagate_down: true propagate_down: true propagate_down: false "
      "propagate_down: false multibox_loss_param { num_classes: 2 neg_pos_ratio: 2 } }";
  const Blobs blobs = {{"x", Waves(16)},
                       {"z", Waves(8)},
                       {"prior", priors},
                       {"gt", {0, 1, 0, 0, 0, 0.4375F, 0.40625F, 0}}};
  for (const char* blob : {"loc", "conf"}) ExpectGradientOfFloats(layers, blobs, blob);
}

TEST(SavedGradientsTest, CtcLoss) {
  const std::string layers = ShapedInput("x", "dim: 4 dim: 2 dim: 5") +
                             ShapedInput("label", "dim: 2 dim: 2") + CopyOf("x", "scores") +
                             "layer { name: 'l' type: 'CtcLoss' bottom: 'scores' bottom: 'label' "
                             "top: 'l' }";
  ExpectGradientOfFloats(layers, {{"x", Waves(40)}, {"label", {1, 2, 3, 1}}}, "scores");
}

TEST(SavedGradientsTest, ScaleShift) {
  const std::string layers = ShapedInput("x", "dim: 3 dim: 7") + CopyOf("x", "scores") +
                             "layer { name: 'l' type: 'SavedSquares' bottom: 'scores' top: 'l' }";
  ExpectGradientOfFloats(layers, {{"x", Waves(21)}}, "scores");
}

}  // namespace
}  // namespace caffe
