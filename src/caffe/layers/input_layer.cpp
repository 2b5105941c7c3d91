#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {
namespace {

// Blobs that the caller sets. Shapes: none (reshape the blobs later), one for all, or one each.
class InputLayer final : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override {
    return {.num_bottoms = 0, .min_tops = 1, .is_input = true, .has_backward = false};
  }

  void Prepare(const DataPlace& place) override {
    Require(place.ranks == 1, "is set by the caller, so it cannot be divided among ", place.ranks,
            " workers; train with one, or read the data with a Data layer");
  }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>&) const override {
    const InputParameter& input = param().input_param();
    const int num_tops = param().top_size();
    Require(input.shape_size() <= 1 || input.shape_size() == num_tops, "has ", input.shape_size(),
            " shapes for ", num_tops, " tops; give none, one, or one each");
    std::vector<Shape> tops;
    for (int i = 0; i < num_tops; ++i) {
      if (input.shape_size() == 0) {
        tops.emplace_back();
        continue;
      }
      const BlobShape& shape = input.shape(input.shape_size() == 1 ? 0 : i);
      tops.emplace_back(std::vector<int64_t>(shape.dim().begin(), shape.dim().end()));
    }
    return tops;
  }

  void EmitForward(GraphBuilder&) const override {}
};

REGISTER_LAYER_CLASS(Input);

}  // namespace
}  // namespace caffe
