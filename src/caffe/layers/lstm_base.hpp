// Common base of LSTM and Lstm: everything but their bottoms and the order of their parameters.
#pragma once

#include "caffe/layers/recurrent_base.hpp"

namespace caffe {

// Long short-term memory; its gates are ordered i, f, o, g.
class LstmBase : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 protected:
  int num_states() const override { return 2; }
  // Index of the parameter W_hc (4D,D).
  virtual int recurrent_weights() const = 0;
  // Limit for the gradients of the gates' inputs; 0: none.
  virtual float clipping_threshold() const { return 0; }

  int64_t gates() const { return 4 * width(); }

 private:
  static constexpr int kH = 0, kC = 1;

  // h and c after step t (-1: before the first), the gates' inputs in a step, and the recurrent h,
  // which is 0 at the start of a sequence.
  Value* H(GraphBuilder& graph, int64_t t) const { return State(graph, "h", kH, t); }
  Value* C(GraphBuilder& graph, int64_t t) const { return State(graph, "c", kC, t); }
  Value* State(GraphBuilder& graph, const char* name, int state, int64_t t) const;
  Value* GateInputs(GraphBuilder& graph, int64_t t) const;
  Value* Hidden(GraphBuilder& graph, int64_t t) const;
  Value* Clipped(GraphBuilder& graph, int64_t t, Value* dgates) const;
};

}  // namespace caffe
