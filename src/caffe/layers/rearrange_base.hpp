// Common base of layers that only move elements.
#pragma once

#include <vector>

#include "caffe/layer.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {

// Reshapes the bottom, permutes its axes, and reshapes the result to the top's shape.
class RearrangeBase : public Layer {
 public:
  using Layer::Layer;

  LayerTraits traits() const override { return {.num_bottoms = 1, .num_tops = 1}; }

  void EmitForward(GraphBuilder& graph) const override {
    const Rearrangement moves = RearrangementOf(graph.shape(graph.bottom(0)));
    Value* seen = graph.Scratch("seen", moves.seen);
    Value* moved = graph.Scratch("moved", moves.permute.OutputShape(moves.seen));
    graph.Emit(ops::View{}, {graph.bottom(0)}, {seen});
    graph.Emit(moves.permute, {seen}, {moved});
    graph.Emit(ops::View{}, {moved}, {graph.top(0)});
  }

  void EmitBackward(GraphBuilder& graph) const override {
    if (!graph.wants_bottom_diff(0)) return;
    const Rearrangement moves = RearrangementOf(graph.shape(graph.bottom(0)));
    Value* dmoved = graph.Scratch("dmoved", moves.permute.OutputShape(moves.seen));
    Value* dseen = graph.Scratch("dseen", moves.seen);
    graph.Emit(ops::View{}, {graph.top_diff(0)}, {dmoved});
    graph.Emit(moves.permute.Inverse(), {dmoved}, {dseen});
    graph.Emit(ops::View{}, {dseen}, {graph.bottom_diff(0)});
  }

 protected:
  struct Rearrangement {
    Shape seen;
    ops::Permute permute;
  };
  virtual Rearrangement RearrangementOf(const Shape& bottom) const = 0;
};

}  // namespace caffe
