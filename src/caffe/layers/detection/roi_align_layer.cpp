#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/region_layer.hpp"

namespace caffe {
namespace {

// The mean of bilinear samples in each cell of a box; no edge is rounded (He et al. 2017, "Mask
// R-CNN").
class ROIAlignLayer final : public RegionLayer {
 public:
  explicit ROIAlignLayer(const LayerParameter& param)
      : RegionLayer(param), options_(param.roi_align_param()) {
    RequireCells(options_.pooled_h(), options_.pooled_w(), options_.spatial_scale());
    Require(options_.sampling_ratio() >= 0, "sampling_ratio is ", options_.sampling_ratio(),
            "; it must be the number of samples per cell and side, or 0 for as many as pixels");
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::RegionAlign(SizesOf(graph), options_.sampling_ratio()),
               {graph.bottom(0), graph.bottom(1)}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::RegionAlignGrad(SizesOf(graph), options_.sampling_ratio()),
               {graph.top_diff(0), graph.bottom(1)}, {graph.bottom_diff(0)});
  }

 private:
  Cells CellsOf(int64_t channels) const override {
    return {channels, options_.pooled_h(), options_.pooled_w(), options_.spatial_scale()};
  }

  const ROIAlignParameter options_;
};

REGISTER_LAYER_CLASS(ROIAlign);

}  // namespace
}  // namespace caffe
