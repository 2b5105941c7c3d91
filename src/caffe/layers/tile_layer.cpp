#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/arrange.hpp"

namespace caffe {
namespace {

// Repeats its bottom `tiles` times along `axis`.
class TileLayer final : public Layer {
 public:
  explicit TileLayer(const LayerParameter& param)
      : Layer(param), tiles_(param.tile_param().tiles()) {
    Require(param.tile_param().has_tiles(), "tile_param { tiles } is missing");
    Require(tiles_ > 0, "tiles is ", tiles_, "; it must be at least 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const int axis = Axis(bottoms[0]);
    return {bottoms[0].With(axis, bottoms[0][axis] * tiles_)};
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::Tile{.axis = Axis(graph.shape(graph.bottom(0))), .tiles = tiles_},
               {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::TileGrad{.axis = Axis(graph.shape(graph.bottom(0))), .tiles = tiles_},
               {graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  int Axis(const Shape& bottom) const { return bottom.CanonicalAxis(param().tile_param().axis()); }

  const int64_t tiles_;
};

REGISTER_LAYER_CLASS(Tile);

}  // namespace
}  // namespace caffe
