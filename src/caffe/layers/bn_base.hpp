// Common base of BN and SyncBN.
#pragma once

#include <vector>

#include "caffe/layer.hpp"
#include "caffe/ops/broadcast.hpp"

namespace caffe {

// Batch normalisation with its own slope and bias, in two dialects. PSPNet: 4 blobs (slope, bias,
// running mean and variance). SegNet, recognised by bn_mode, scale_filler or shift_filler: 2 blobs
// (scale, shift); the statistics are always the batch's, or in bn_mode INFERENCE part of the blobs.
// All blobs are 1 x C x 1 x 1. SegNet's tops 1 and 2, if present, are the batch's mean and biased
// variance, without gradients.
class BNBase : public Layer {
 public:
  explicit BNBase(const LayerParameter& param);

  LayerTraits traits() const override {
    const bool has_statistics = is_of_segnet() && !only_scales();
    return {.num_bottoms = 1,
            .min_tops = 1,
            .max_tops = has_statistics ? 3 : 1,
            .can_run_in_place = true};
  }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 protected:
  enum Blob { kSlope, kBias, kMean, kVariance };
  static constexpr ops::BroadcastAxes kChannels{.axis = 1, .num_axes = 1};

  double eps() const;
  // Emits the normalised top and the statistics used for it; and the gradient.
  virtual void EmitNormalised(GraphBuilder& graph, Value* mean, Value* variance) const;
  virtual void EmitNormalisedGrad(GraphBuilder& graph, Value* mean, Value* variance) const;

 private:
  bool is_of_segnet() const;
  bool only_scales() const { return options_.bn_mode() == BNParameter::INFERENCE; }
  bool uses_given_statistics() const;
  Value* Statistic(GraphBuilder& graph, const char* name) const;

  const BNParameter options_;
};

}  // namespace caffe
