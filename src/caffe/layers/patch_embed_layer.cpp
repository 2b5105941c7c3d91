#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"

namespace caffe {
namespace {

// Divides images (N,C,H,W) into square patches, row by row, and multiplies each with learned
// weights: a row of D numbers for each patch, (N,P,D) (Dosovitskiy et al. 2020). Parameters: W (D,C
// S,S), as those of a convolution, and b (D).
class PatchEmbedLayer final : public Layer {
 public:
  explicit PatchEmbedLayer(const LayerParameter& param)
      : Layer(param), options_(param.patch_embed_param()) {
    Require(options_.num_output() > 0, "num_output is ", options_.num_output(),
            "; set patch_embed_param { num_output } to at least 1");
    Require(size() >= 1, "patch_size is ", size(), "; it must be at least 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    Require(x.num_axes() == 4, "needs a bottom with 4 axes (N,C,H,W), got shape ", x);
    Require(x[2] % size() == 0 && x[3] % size() == 0, "images of ", x[2], "x", x[3],
            " cannot be divided into patches of ", size(), "x", size(), " (patch_size)");
    return {Shape{x[0], x[2] / size() * (x[3] / size()), width()}};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    return {{Shape{width(), bottoms[0][1], size(), size()}, options_.weight_filler()},
            {Shape{width()}, options_.bias_filler()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    graph.Emit(
        ops::Gemm{
            .rows = sizes.patches, .columns = width(), .inner = sizes.numbers, .transpose_b = true},
        {Patches(graph, "patches"), graph.param(0), graph.param(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const Sizes sizes = SizesOf(graph);
    Value* dy = graph.top_diff(0);
    graph.Emit(
        ops::Gemm{
            .rows = width(), .columns = sizes.numbers, .inner = sizes.patches, .transpose_a = true},
        {dy, Patches(graph, "patches_again")}, {graph.param_diff(0)});
    graph.Emit(ops::SumToAxes{{.axis = 2, .num_axes = 1}}, {dy}, {graph.param_diff(1)});
    if (!graph.wants_bottom_diff(0)) return;
    Value* dpatches = graph.Scratch("dpatches", sizes.by_patch);
    graph.Emit(ops::Gemm{.rows = sizes.patches, .columns = sizes.numbers, .inner = width()},
               {dy, graph.param(0)}, {dpatches});
    Value* dimage = graph.Scratch("dimage", sizes.by_image);
    graph.Emit(ops::Permute{{0, 3, 1, 4, 2, 5}}, {dpatches}, {dimage});
    graph.Emit(ops::View{}, {dimage}, {graph.bottom_diff(0)});
  }

 private:
  // The axes of images are divided into rows of patches and rows in them; those of patches are in
  // the order of a row of the product.
  struct Sizes {
    Shape by_image, by_patch;
    int64_t patches, numbers;
  };

  int64_t size() const { return options_.patch_size(); }
  int64_t width() const { return options_.num_output(); }

  Sizes SizesOf(const GraphBuilder& graph) const {
    const Shape& x = graph.shape(graph.bottom(0));
    const int64_t down = x[2] / size(), across = x[3] / size();
    return {Shape{x[0], x[1], down, size(), across, size()},
            Shape{x[0], down, across, x[1], size(), size()}, x[0] * down * across,
            x[1] * size() * size()};
  }

  Value* Patches(GraphBuilder& graph, const std::string& name) const {
    const Sizes sizes = SizesOf(graph);
    Value* divided = graph.Scratch(name + "_divided", sizes.by_image);
    graph.Emit(ops::View{}, {graph.bottom(0)}, {divided});
    Value* patches = graph.Scratch(name, sizes.by_patch);
    graph.Emit(ops::Permute{{0, 2, 4, 1, 3, 5}}, {divided}, {patches});
    return patches;
  }

  const PatchEmbedParameter options_;
};

REGISTER_LAYER_CLASS(PatchEmbed);

}  // namespace
}  // namespace caffe
