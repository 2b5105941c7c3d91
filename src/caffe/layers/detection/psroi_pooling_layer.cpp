#include "caffe/core/saturating_product.hpp"
#include "caffe/layer_factory.hpp"
#include "caffe/layers/detection/region_layer.hpp"

namespace caffe {
namespace {

// Means of a box's cells; each cell uses channels of its own (Dai et al. 2016, "R-FCN").
class PSROIPoolingLayer final : public RegionLayer {
 public:
  explicit PSROIPoolingLayer(const LayerParameter& param)
      : RegionLayer(param), options_(param.psroi_pooling_param()) {
    Require(options_.output_dim() > 0 && options_.group_size() > 0,
            "output_dim and group_size are ", options_.output_dim(), " and ", options_.group_size(),
            "; set both to at least 1");
    RequireScale(options_.spatial_scale());
  }

  void EmitForward(GraphBuilder& graph) const override {
    graph.Emit(ops::SensitiveRegionMean(SizesOf(graph)), {graph.bottom(0), graph.bottom(1)},
               {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    graph.Emit(ops::SensitiveRegionMeanGrad(SizesOf(graph)), {graph.top_diff(0), graph.bottom(1)},
               {graph.bottom_diff(0)});
  }

 private:
  Cells CellsOf(int64_t channels) const override {
    const int64_t group = options_.group_size();
    const int64_t needed = SaturatingProduct({options_.output_dim(), group, group});
    Require(channels == needed, "bottom 0 has ", channels, " channels; output_dim ",
            options_.output_dim(), " and group_size ", group, " need ", needed);
    return {options_.output_dim(), group, group, options_.spatial_scale()};
  }

  const PSROIPoolingParameter options_;
};

REGISTER_LAYER_CLASS(PSROIPooling);

}  // namespace
}  // namespace caffe
