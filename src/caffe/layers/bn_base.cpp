#include "caffe/layers/bn_base.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/layers/norm_eps.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/norm.hpp"

namespace caffe {
namespace {

FillerParameter Constant(float value) {
  FillerParameter filler;
  filler.set_value(value);
  return filler;
}

}  // namespace

BNBase::BNBase(const LayerParameter& param) : Layer(param), options_(param.bn_param()) {
  RequireEps(eps());
  const bool names_pspnet = options_.has_slope_filler() || options_.has_bias_filler() ||
                            options_.has_momentum() || options_.has_frozen();
  Require(!is_of_segnet() || !names_pspnet,
          "bn_param has options of SegNet (scale_filler, shift_filler, bn_mode) and of PSPNet "
          "(slope_filler, bias_filler, momentum, frozen); leave out one kind");
  Require(options_.momentum() >= 0 && options_.momentum() <= 1, "momentum is ", options_.momentum(),
          "; it is the share that is kept, from 0 to 1");
}

bool BNBase::is_of_segnet() const {
  return options_.has_bn_mode() || options_.has_scale_filler() || options_.has_shift_filler();
}

bool BNBase::uses_given_statistics() const {
  return !is_of_segnet() && (options_.frozen() || phase() == TEST);
}

// SegNet has no such option, and a constant of its own.
double BNBase::eps() const {
  return is_of_segnet() && !options_.has_eps() ? 1e-9 : static_cast<double>(options_.eps());
}

std::vector<Shape> BNBase::InferTopShapes(const std::vector<Shape>& bottoms) const {
  Require(bottoms[0].num_axes() >= 2, "the bottom has shape ", bottoms[0],
          "; it must have items and channels");
  std::vector<Shape> tops(std::max(param().top_size(), 1), Shape{1, bottoms[0][1], 1, 1});
  tops[0] = bottoms[0];
  return tops;
}

std::vector<ParamDeclaration> BNBase::Params(const std::vector<Shape>& bottoms) const {
  const Shape channels{1, bottoms[0][1], 1, 1};
  if (is_of_segnet()) {
    const bool has_filler = options_.has_scale_filler();
    return {{channels, has_filler ? options_.scale_filler() : Constant(1)},
            {channels, options_.shift_filler()}};
  }
  const bool learns = !options_.frozen(), has_filler = options_.has_slope_filler();
  return {{channels, has_filler ? options_.slope_filler() : Constant(1), learns},
          {channels, options_.bias_filler(), learns},
          {channels, Constant(0), /*is_learnable=*/false},
          {channels, Constant(options_.frozen() ? 1 : 0), /*is_learnable=*/false}};
}

Value* BNBase::Statistic(GraphBuilder& graph, const char* name) const {
  return graph.Saved(name, Shape{graph.shape(graph.bottom(0))[1]});
}

void BNBase::EmitForward(GraphBuilder& graph) const {
  Value *x = graph.bottom(0), *y = graph.top(0);
  Value *slope = graph.param(kSlope), *bias = graph.param(kBias);
  if (only_scales()) {
    graph.Emit(ops::ScaleShift{kChannels}, {x, slope, bias}, {y});
    return;
  }
  if (uses_given_statistics()) {
    graph.Emit(ops::BatchNormInference{.eps = eps()},
               {x, graph.param(kMean), graph.param(kVariance), nullptr, slope, bias}, {y});
    return;
  }
  Value *mean = Statistic(graph, "mean"), *variance = Statistic(graph, "variance");
  EmitNormalised(graph, mean, variance);
  if (is_of_segnet()) {
    if (graph.num_tops() > 1) graph.Emit(ops::View{}, {mean}, {graph.top(1)});
    if (graph.num_tops() > 2) graph.Emit(ops::View{}, {variance}, {graph.top(2)});
    return;
  }
  // The running variance is the biased one, so count is 1.
  graph.Emit(ops::UpdateRunningStatistics{.fraction = options_.momentum(),
                                          .count = 1,
                                          .decaying_sums = false,
                                          .copies_first = false},
             {mean, variance}, {graph.param(kMean), graph.param(kVariance), nullptr});
}

void BNBase::EmitNormalised(GraphBuilder& graph, Value* mean, Value* variance) const {
  graph.Emit(ops::BatchNorm{.eps = eps()},
             {graph.bottom(0), graph.param(kSlope), graph.param(kBias)},
             {graph.top(0), mean, variance});
}

void BNBase::EmitNormalisedGrad(GraphBuilder& graph, Value* mean, Value* variance) const {
  graph.Emit(ops::BatchNormGrad{.eps = eps()},
             {graph.bottom(0), mean, variance, graph.top_diff(0), graph.param(kSlope)},
             {graph.bottom_diff(0), graph.param_diff(kSlope), graph.param_diff(kBias)});
}

void BNBase::EmitBackward(GraphBuilder& graph) const {
  Value *x = graph.bottom(0), *dy = graph.top_diff(0), *dx = graph.bottom_diff(0);
  Value *slope = graph.param(kSlope), *dslope = graph.param_diff(kSlope);
  Value* dbias = graph.param_diff(kBias);
  if (only_scales()) {
    graph.Emit(ops::SumToAxes{kChannels}, {dy, x}, {dslope});
    graph.Emit(ops::SumToAxes{kChannels}, {dy}, {dbias});
    graph.Emit(ops::ScaleShift{kChannels}, {dy, slope}, {dx});
  } else if (uses_given_statistics()) {
    graph.Emit(ops::BatchNormInferenceGrad{.eps = eps()},
               {dy, graph.param(kVariance), nullptr, slope}, {dx});
  } else {
    EmitNormalisedGrad(graph, Statistic(graph, "mean"), Statistic(graph, "variance"));
  }
}

}  // namespace caffe
