// Common base of LSTM and Lstm: everything but their bottoms and the order of their parameters.
#pragma once

#include "caffe/layers/recurrent_base.hpp"

namespace caffe {

// Long short-term memory; its gates are ordered i, f, o, g. P is output_width().
class LstmBase : public RecurrentBase {
 public:
  using RecurrentBase::RecurrentBase;

 protected:
  int num_states() const override { return 2; }
  int64_t gates() const override { return 4 * width(); }
  // Index of the parameter W_hc (4D,P) in a part; with a projection, W_hr (P,D) follows.
  virtual int recurrent_weights(const Part& part) const = 0;
  // Limit for the gradients of the gates' inputs; 0: none.
  virtual float clipping_threshold() const { return 0; }

  void EmitPart(GraphBuilder& graph, const Part& part, Value* y) const override;
  Value* EmitPartGrad(GraphBuilder& graph, const Part& part, Value* y, Value* dy) const override;

 private:
  static constexpr int kH = 0, kC = 1;

  bool projects() const { return options().projection_size() > 0; }
  // W_hc and W_hr.
  Value* Weights(GraphBuilder& graph, const Part& part) const;
  Value* Projection(GraphBuilder& graph, const Part& part) const;
  // Values that backward reads: the gates' inputs, c, and the numbers that W_hr projects.
  Value* GateInputs(GraphBuilder& graph, const Part& part) const;
  Value* Cells(GraphBuilder& graph, const Part& part) const;
  Value* Units(GraphBuilder& graph, const Part& part) const;
};

}  // namespace caffe
