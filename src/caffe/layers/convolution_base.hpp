// Common base of Convolution, Deconvolution and Im2col: convolution_param and its geometry.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe {

// Windows over the axes after the channel axis `axis`; all axes before it are batch axes.
class ConvolutionBase : public Layer {
 public:
  explicit ConvolutionBase(const LayerParameter& param);

 protected:
  const ConvolutionParameter& options() const { return options_; }
  int ChannelAxis(const Shape& bottom) const { return bottom.CanonicalAxis(options_.axis()); }
  // Throws InvalidArgument if the fields do not match the number of spatial axes.
  ops::ConvGeometry Geometry(const Shape& bottom) const;
  // Indices in conv_algos_override, by op: a deconvolution's forward is a gradient of data.
  enum Pass { kForward, kGradData, kGradWeights };
  // The settings of conv_algos_override, cudnn_math_override and cudnn_convolution_algo_seeker.
  ops::ConvChoice Choice(Pass pass) const;
  // Number of channel groups; depthwise layers override the file's value.
  virtual int64_t Groups(const Shape& /*bottom*/) const { return options_.group(); }

  // Requires num_output to be set and divisible by the number of groups.
  void CheckOutputs() const;
  // Requires the number of groups, which may depend on the bottom, to divide its channels and
  // num_output.
  void CheckGroups(const ops::ConvGeometry& geometry, const Shape& bottom) const;
  // Several bottoms can share weights only if they have equal shapes.
  static void CheckEqual(const std::vector<Shape>& bottoms);

  // Ops support one batch axis: with a channel axis other than 1, the axes before it are folded.
  // FoldedInput() folds a value to read, FoldedOutput() one to write; FinishOutput() unfolds the
  // latter.
  Value* FoldedInput(GraphBuilder& graph, const std::string& name, int i, Value* value) const;
  Value* FoldedOutput(GraphBuilder& graph, const std::string& name, int i, Value* value) const;
  static void FinishOutput(GraphBuilder& graph, Value* folded, Value* value);

 private:
  Shape Folded(const Shape& shape) const;

  const ConvolutionParameter options_;
  std::array<int, 3> algorithms_{};  // conv_algos_override
};

// Convolution: correlation with learned kernels, which are not flipped.
class ConvolutionLayer : public ConvolutionBase {
 public:
  explicit ConvolutionLayer(const LayerParameter& param);

  LayerTraits traits() const override { return {.min_bottoms = 1, .equal_bottoms_and_tops = true}; }
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;
};

}  // namespace caffe
