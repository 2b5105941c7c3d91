// FormulaLayer: a layer whose top is a formula of its bottoms, with the formula's gradient.
#pragma once

#include <vector>

#include "caffe/layer.hpp"
#include "caffe/layers/expression/formula_terms.hpp"
#include "caffe/layers/expression/formula_tree.hpp"

namespace caffe {

class FormulaLayer : public Layer {
 public:
  FormulaLayer(const LayerParameter& param, FormulaTree tree)
      : Layer(param), tree_(std::move(tree)) {}

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 private:
  int Add(FormulaTerms* terms, const std::vector<Shape>& bottoms) const;

  const FormulaTree tree_;
};

}  // namespace caffe
