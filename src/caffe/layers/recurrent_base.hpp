// Common base of RNN, GRU and LSTM: bottoms, tops, and the parts of their step.
#pragma once

#include <string>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/ops/broadcast.hpp"

namespace caffe {

// Bottoms: x (T,N,...), cont (T,N) (0 at the start of a sequence), optionally x_static (N,...),
// then with expose_hidden the initial states (1,N,D each). Tops: the output (T,N,D), then with
// expose_hidden the final states. Without expose_hidden, states are carried to the next pass.
//
// The T steps are unrolled into ops when the net is compiled. Everything that does not depend on
// the previous step, the products with x and all weight gradients, is one matrix product for all
// steps.
class RecurrentBase : public Layer {
 public:
  explicit RecurrentBase(const LayerParameter& param)
      : RecurrentBase(param, "recurrent_param", param.recurrent_param()) {}

  LayerTraits traits() const override;
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  bool AllowForceBackward(int bottom) const override {
    return bottom != 1 && bottom < first_state_bottom();
  }

 protected:
  // For options in another field.
  RecurrentBase(const LayerParameter& param, const char* field, RecurrentParameter options);

  // Number of states passed between steps: h, and for LSTM also c.
  virtual int num_states() const = 0;
  // Indices of the parameters that InputProducts reads.
  struct InputParams {
    int weights, bias, static_weights;
  };
  virtual InputParams input_params() const { return {0, 1, 2}; }

  const RecurrentParameter& options() const { return options_; }
  int64_t width() const { return options().num_output(); }
  bool exposes_states() const { return options().expose_hidden(); }
  // Without cont, all sequences start with the batch, and no state is carried to the next pass.
  virtual bool has_cont() const { return true; }
  virtual bool has_static_input() const {
    return param().bottom_size() == 3 + (exposes_states() ? num_states() : 0);
  }
  int first_state_bottom() const { return has_static_input() ? 3 : 2; }

  struct Sizes {
    int64_t steps, items, inputs, static_inputs;
  };
  virtual Sizes SizesOf(const std::vector<Shape>& bottoms) const;
  // Throws InvalidArgument for more steps than can be unrolled in a reasonable time.
  static void RequireSteps(int64_t steps);
  Sizes SizesOf(GraphBuilder& graph) const;

  // W x + b for all steps and items, plus the static input's part: (T N, columns).
  Value* InputProducts(GraphBuilder& graph, int64_t columns) const;
  // The gradients of the inputs of InputProducts, given that of its result.
  void InputProductsGrad(GraphBuilder& graph, int64_t columns, Value* dproducts) const;

  // Rows of step t of a (T N, columns) value.
  Value* Step(GraphBuilder& graph, const std::string& name, Value* all, int64_t step,
              int64_t columns) const;
  // cont of step t: (N). Forward loads it; backward reuses it.
  virtual void LoadCont(GraphBuilder& graph, int64_t step) const;
  Value* Cont(GraphBuilder& graph, int64_t step) const;
  // Joins (N, columns) values of all steps: (T N, columns).
  Value* Join(GraphBuilder& graph, const std::string& name, const std::vector<Value*>& steps,
              int64_t columns) const;
  // A state before the first step, (N,D): a bottom, or the final state of the previous pass.
  // Forward loads it.
  void LoadInitialState(GraphBuilder& graph, int state) const;
  Value* InitialState(GraphBuilder& graph, int state) const;
  // Stores a state after the last step: in a top, or for the next pass.
  void KeepState(GraphBuilder& graph, int state, Value* value) const;
  // Axis 0, one number per item.
  static constexpr ops::BroadcastAxes kItems{.axis = 0, .num_axes = 1};

  // c = a w^T, where a is (rows, inner) and w is (columns, inner).
  static Value* Times(GraphBuilder& graph, const std::string& name, Value* a, Value* weights,
                      int64_t rows, int64_t columns, int64_t inner, Value* bias = nullptr);
  // da = dc w.
  static Value* TimesGrad(GraphBuilder& graph, const std::string& name, Value* dc, Value* weights,
                          int64_t rows, int64_t columns, int64_t inner);
  // dw = dc^T a.
  static void WeightsGrad(GraphBuilder& graph, Value* dc, Value* a, Value* dweights, int64_t rows,
                          int64_t columns, int64_t inner);
  // ScaleItems(): x scaled by one number per item. Sum(): the sum of the values that are not null.
  static Value* ScaleItems(GraphBuilder& graph, const std::string& name, Value* x, Value* factors);
  static Value* Sum(GraphBuilder& graph, const std::string& name, const std::vector<Value*>& parts);

 private:
  const RecurrentParameter options_;
};

}  // namespace caffe
