#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/row_norm.hpp"

namespace caffe {
namespace {

// Normalises each group of channels of each item (Wu and He 2018), then scales and shifts each
// channel by a learned pair. InstanceNorm has a group for each channel (Ulyanov et al. 2016).
class GroupNormLayer final : public Layer {
 public:
  explicit GroupNormLayer(const LayerParameter& param)
      : Layer(param), options_(param.group_norm_param()) {
    RequireEps(options_.eps());
    Require(options_.affine() || !(options_.has_scale_filler() || options_.has_bias_filler()),
            "affine is false, but there is a filler for the scale or the bias; leave out one");
    Require(!is_by_channel() || !options_.has_num_groups(),
            "InstanceNorm has a group for each channel; leave out num_groups, or use GroupNorm");
    Require(options_.num_groups() > 0, "num_groups is 0; it must be at least 1");
  }

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& bottom = bottoms[0];
    Require(bottom.num_axes() >= 2, "the bottom has shape ", bottom,
            "; it must have items and channels");
    const int64_t groups = Groups(bottom);
    Require(groups > 0 && bottom[1] % groups == 0, "the ", bottom[1],
            " channels cannot be divided into ", groups, " groups; change num_groups");
    return {bottom};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    if (!options_.affine()) return {};
    const Shape shape{bottoms[0][1]};
    FillerParameter scale = options_.scale_filler();
    if (!options_.has_scale_filler()) scale.set_value(1);
    return {{shape, scale}, {shape, options_.bias_filler()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    Value* rows = Rows(graph, "rows", graph.bottom(0));
    Value* normalised = NormalisedRows(graph);
    std::vector<Value*> outputs = {normalised};
    if (graph.with_backward()) outputs.push_back(Deviation(graph));
    graph.Emit(ops::Mvn{.axis = 1, .eps = options_.eps(), .eps_in_root = true}, {rows}, outputs);
    if (!options_.affine()) {
      graph.Emit(ops::View{}, {normalised}, {graph.top(0)});
      return;
    }
    Value* channels = Channels(graph, "channels", normalised);
    graph.Emit(ops::ScaleShift{}, {channels, graph.param(0), graph.param(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    Value* dnormalised = graph.top_diff(0);
    if (options_.affine()) {
      Value* normalised = Channels(graph, "channels_again", NormalisedRows(graph));
      graph.Emit(ops::SumToAxes{}, {graph.top_diff(0), normalised}, {graph.param_diff(0)});
      graph.Emit(ops::SumToAxes{}, {graph.top_diff(0)}, {graph.param_diff(1)});
      if (!graph.wants_bottom_diff(0)) return;
      dnormalised = graph.Scratch("dnormalised", graph.shape(graph.bottom(0)));
      graph.Emit(ops::ScaleShift{}, {graph.top_diff(0), graph.param(0)}, {dnormalised});
    }
    if (!graph.wants_bottom_diff(0)) return;
    Value* drows = graph.Scratch("drows", RowsOf(graph));
    graph.Emit(
        ops::MvnGrad{.axis = 1},
        {NormalisedRows(graph), Deviation(graph), Rows(graph, "dnormalised_rows", dnormalised)},
        {drows});
    graph.Emit(ops::View{}, {drows}, {graph.bottom_diff(0)});
  }

 private:
  bool is_by_channel() const { return param().type() == "InstanceNorm"; }
  int64_t Groups(const Shape& bottom) const {
    return is_by_channel() ? bottom[1] : int64_t{options_.num_groups()};
  }
  // A row for each group of each item.
  Shape RowsOf(const GraphBuilder& graph) const {
    const Shape& bottom = graph.shape(graph.bottom(0));
    const int64_t groups = Groups(bottom);
    return {bottom[0] * groups, bottom[1] / groups * bottom.count(2)};
  }
  Value* Rows(GraphBuilder& graph, const std::string& name, Value* x) const {
    Value* rows = graph.Scratch(name, RowsOf(graph));
    graph.Emit(ops::View{}, {x}, {rows});
    return rows;
  }
  static Value* Channels(GraphBuilder& graph, const std::string& name, Value* rows) {
    Value* channels = graph.Scratch(name, graph.shape(graph.bottom(0)));
    graph.Emit(ops::View{}, {rows}, {channels});
    return channels;
  }
  Value* NormalisedRows(GraphBuilder& graph) const {
    return graph.Saved("normalised", RowsOf(graph), SavedAs::kData);
  }
  Value* Deviation(GraphBuilder& graph) const {
    return graph.Saved("deviation", Shape{RowsOf(graph)[0]});
  }

  const GroupNormParameter options_;
};

using InstanceNormLayer = GroupNormLayer;

REGISTER_LAYER_CLASS(GroupNorm);
REGISTER_LAYER_CLASS(InstanceNorm, "group_norm_param");

}  // namespace
}  // namespace caffe
