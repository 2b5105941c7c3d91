#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/region_layer.hpp"

namespace caffe {
namespace {

// The largest element in each cell of a box (Girshick 2015, "Fast R-CNN").
class ROIPoolingLayer final : public RegionLayer {
 public:
  explicit ROIPoolingLayer(const LayerParameter& param)
      : RegionLayer(param), options_(param.roi_pooling_param()) {
    RequireCells(options_.pooled_h(), options_.pooled_w(), options_.spatial_scale());
  }

  void EmitForward(GraphBuilder& graph) const override {
    const ops::RegionSizes sizes = SizesOf(graph);
    graph.Emit(ops::RegionWinner(sizes), {graph.bottom(0), graph.bottom(1)}, {Winner(graph)});
    graph.Emit(ops::RegionMax(sizes), {graph.bottom(0), graph.bottom(1), Winner(graph)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::RegionMaxGrad(SizesOf(graph)),
               {graph.top_diff(0), graph.bottom(1), Winner(graph)}, {graph.bottom_diff(0)});
  }

 private:
  Cells CellsOf(int64_t channels) const override {
    return {channels, options_.pooled_h(), options_.pooled_w(), options_.spatial_scale()};
  }

  static Value* Winner(GraphBuilder& graph) {
    return graph.Saved("winner", graph.shape(graph.top(0)));
  }

  const ROIPoolingParameter options_;
};

REGISTER_LAYER_CLASS(ROIPooling);

}  // namespace
}  // namespace caffe
