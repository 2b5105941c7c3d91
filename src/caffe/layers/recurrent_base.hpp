// Common base of RNN, GRU and LSTM: bottoms, tops, layers above each other, and directions.
#pragma once

#include <string>
#include <vector>

#include "caffe/layer.hpp"
#include "caffe/ops/recurrence.hpp"

namespace caffe {

// Bottoms: x (T,N,...), optionally cont (T,N) (0 at the start of a sequence) and x_static (N,...),
// then with expose_hidden the initial states (P,N,D each). Tops: the output (T,N,D), or (T,N,2D) in
// two directions, then with expose_hidden the final states. P is the number of parts: layers times
// directions. Without expose_hidden, states are carried to the next pass, except from the last step
// back to the first. With projection_size the outputs and the first state have that width, not D.
//
// The products with x and the gradients of all weights do not depend on the step before, so each is
// one matrix product for all steps; the rest is one op of ops/recurrence.hpp.
class RecurrentBase : public Layer {
 public:
  explicit RecurrentBase(const LayerParameter& param)
      : RecurrentBase(param, "recurrent_param", param.recurrent_param()) {}

  LayerTraits traits() const override;
  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override;
  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override;
  bool AllowForceBackward(int bottom) const override {
    return bottom != 1 && (bottom < first_state_bottom() || options().backprop_states());
  }
  void EmitForward(GraphBuilder& graph) const override;
  void EmitBackward(GraphBuilder& graph) const override;

 protected:
  // One layer in one direction. It reads x (T N, inputs).
  struct Part {
    int index = 0;
    bool reverse = false, has_static_input = false;
    Value* x = nullptr;
    int64_t inputs = 0;
    int first_param = 0;
    // By state, null if absent: before the first step, after the last one, and in backward the
    // gradients of both.
    std::vector<Value*> initial, last, dinitial, dlast;

    // Names of values are unique in the layer.
    std::string Named(const std::string& name) const {
      return index == 0 ? name : StrCat(name, "_", index);
    }
  };
  struct Sizes {
    int64_t steps, items, inputs, static_inputs;
    int64_t rows() const { return steps * items; }
  };

  // For options in another field.
  RecurrentBase(const LayerParameter& param, const char* field, RecurrentParameter options);

  // Number of states passed between steps: h, and for LSTM also c.
  virtual int num_states() const = 0;
  // The parameters of a part; without a static input, static_inputs is 0.
  virtual std::vector<ParamDeclaration> PartParams(int64_t inputs, int64_t static_inputs) const = 0;
  // Emits the steps of a part, whose output is y (T N,output_width()). The gradient gets dy, which
  // may be null, and returns that of the part's products with x (InputProducts).
  virtual void EmitPart(GraphBuilder& graph, const Part& part, Value* y) const = 0;
  virtual Value* EmitPartGrad(GraphBuilder& graph, const Part& part, Value* y, Value* dy) const = 0;
  // Columns of the products with x, and the parameters that they read, counted from a part's first.
  virtual int64_t gates() const = 0;
  struct InputParams {
    int weights, bias, static_weights;
  };
  virtual InputParams input_params() const { return {0, 1, 2}; }

  const RecurrentParameter& options() const { return options_; }
  virtual bool can_project() const { return false; }
  virtual bool can_reset_after() const { return false; }
  int64_t width() const { return options().num_output(); }
  int64_t output_width() const {
    return options().projection_size() > 0 ? int64_t{options().projection_size()} : width();
  }
  bool exposes_states() const { return options().expose_hidden(); }
  // Without cont, all sequences start with the batch, and no state is carried to the next pass.
  virtual bool has_cont() const { return param().bottom_size() > 1 || exposes_states(); }
  virtual bool has_static_input() const {
    return param().bottom_size() == 3 + (exposes_states() ? num_states() : 0);
  }
  virtual Sizes SizesOf(const std::vector<Shape>& bottoms) const;
  Sizes SizesOf(GraphBuilder& graph) const;

  ops::Recurrence RecurrenceOf(GraphBuilder& graph, const Part& part) const;
  // W x + b for all steps and items, plus the static input's part: (T N, gates()).
  Value* InputProducts(GraphBuilder& graph, const Part& part) const;
  Value* PartParam(GraphBuilder& graph, const Part& part, int i) const {
    return graph.param(part.first_param + i);
  }
  // A value (T N, columns).
  Value* Rows(GraphBuilder& graph, const std::string& name, int64_t columns) const;
  Value* SavedRows(GraphBuilder& graph, const std::string& name, int64_t columns,
                   SavedAs as = SavedAs::kExact) const;
  // Null if there is none.
  Value* Cont(GraphBuilder& graph) const;

  // c = a w^T, where a is (rows, inner) and w is (columns, inner).
  static Value* Times(GraphBuilder& graph, const std::string& name, Value* a, Value* weights,
                      int64_t rows, int64_t columns, int64_t inner, Value* bias = nullptr);
  // da = dc w.
  static Value* TimesGrad(GraphBuilder& graph, const std::string& name, Value* dc, Value* weights,
                          int64_t rows, int64_t columns, int64_t inner);
  // The gradient of parameter i of a part, dc^T a with a (T N, inner) and dc (T N, columns).
  void WeightsGrad(GraphBuilder& graph, const Part& part, int i, Value* dc, Value* a,
                   int64_t columns, int64_t inner) const;

 private:
  int directions() const { return options().bidirectional() ? 2 : 1; }
  int parts() const { return static_cast<int>(options().num_layers()) * directions(); }
  int first_state_bottom() const { return has_static_input() ? 3 : 2; }
  bool carries_states(const Part& part) const {
    return has_cont() && !exposes_states() && !part.reverse;
  }
  Part PartOf(const Sizes& sizes, int layer, int direction) const;
  // The input and the output of a layer, and the output of a part: (T N, ...). `name`: of a
  // temporary value.
  Value* LayerInput(GraphBuilder& graph, int layer, const char* name) const;
  Value* LayerOutput(GraphBuilder& graph, int layer) const;
  Value* PartOutput(GraphBuilder& graph, const Part& part) const;
  // The states of a part in forward, and their gradients in backward.
  void AddStates(GraphBuilder& graph, Part* part) const;
  void AddStateGradients(GraphBuilder& graph, Part* part) const;
  Value* InitialState(GraphBuilder& graph, const Part& part, int state) const;
  Value* CarriedState(GraphBuilder& graph, const Part& part, int state) const;
  int64_t state_width(int state) const { return state == 0 ? output_width() : width(); }
  // A value (1,N,state_width()), or all of a value (P,N,state_width()) if there is only one part.
  Value* StateOf(GraphBuilder& graph, const Part& part, const char* name, int state,
                 Value* all) const;
  // Emits the gradients of what made the products; returns that of x, or null if nobody needs it.
  Value* InputProductsGrad(GraphBuilder& graph, const Part& part, Value* dproducts, bool needs_dx,
                           std::vector<Value*>* dstatics) const;
  void EmitStaticGrad(GraphBuilder& graph, const std::vector<Value*>& dstatics) const;

  const RecurrentParameter options_;
};

}  // namespace caffe
