// Layer Softsign: its meaning, independent of devices and types.
#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/plugin.hpp"
#include "softsign.hpp"
#include "softsign.pb.h"

CAFFE_PLUGIN("softsign", "1.0");

namespace example {
namespace {

class SoftsignLayer final : public caffe::Layer {
 public:
  explicit SoftsignLayer(const caffe::LayerParameter& param)
      : Layer(param), width_(param.GetExtension(softsign_param).width()) {
    caffe::Require(width_ > 0, "softsign_param: width is ", width_, "; it must be positive");
  }

  caffe::LayerTraits traits() const override {
    return {.num_bottoms = 1, .num_tops = 1, .can_run_in_place = true};
  }

  std::vector<caffe::Shape> InferTopShapes(
      const std::vector<caffe::Shape>& bottoms) const override {
    return {bottoms[0]};
  }

  void EmitForward(caffe::GraphBuilder& graph) const override {
    graph.Emit(Softsign(width_), {graph.bottom(0)}, {graph.top(0)});
  }

  void EmitBackward(caffe::GraphBuilder& graph) const override {
    graph.Emit(SoftsignGrad(width_), {graph.bottom(0), graph.top_diff(0)}, {graph.bottom_diff(0)});
  }

 private:
  const float width_;
};

REGISTER_LAYER_CLASS(Softsign, "softsign_param");

}  // namespace
}  // namespace example
