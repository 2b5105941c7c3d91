#include "caffe/core/philox.hpp"
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/constant.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/random.hpp"

namespace caffe {
namespace {

// Stochastic depth (Huang et al. 2016): in training, zeroes each item as a whole with probability
// drop_ratio and scales the others by 1 / (1 - drop_ratio); in testing, the identity. It belongs at
// the end of a residual branch. No mask is stored, because backward draws it again.
class DropPathLayer final : public Layer {
 public:
  explicit DropPathLayer(const LayerParameter& param)
      : Layer(param), ratio_(param.drop_path_param().drop_ratio()) {
    Require(0 <= ratio_ && ratio_ < 1, "drop_ratio is ", ratio_,
            "; it must be at least 0 and less than 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    Require(bottoms[0].num_axes() >= 1, "the bottom is a scalar; it must have items");
    return {bottoms[0]};
  }

  void EmitForward(GraphBuilder& graph) const override {
    EmitOn(graph, "forward", graph.bottom(0), graph.top(0));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (graph.wants_bottom_diff(0))
      EmitOn(graph, "backward", graph.top_diff(0), graph.bottom_diff(0));
  }

 private:
  void EmitOn(GraphBuilder& graph, const std::string& name, Value* from, Value* to) const {
    if (phase() != TRAIN || ratio_ == 0) {
      graph.Emit(ops::View{.keeps_shape = true}, {from}, {to});
      return;
    }
    const int64_t items = graph.shape(from)[0];
    const auto ones = std::make_shared<const std::vector<float>>(items, 1.0f);
    Value* all = graph.Scratch(name + "_ones", Shape{items});
    Value* kept = graph.Scratch(name + "_kept", Shape{items});
    graph.Emit(ops::Constant{ones}, {}, {all});
    graph.Emit(ops::Dropout{.ratio = ratio_, .stream = StreamOf(this->name()), .scales = true},
               {all}, {kept});
    graph.Emit(ops::ScaleShift{{.axis = 0, .num_axes = 1}}, {from, kept}, {to});
  }

  const double ratio_;
};

REGISTER_LAYER_CLASS(DropPath);

}  // namespace
}  // namespace caffe
