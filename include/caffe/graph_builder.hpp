// GraphBuilder: what a layer may say about its computation.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/shape.hpp"

namespace caffe {

class Graph;
struct LayerCall;
struct Node;
struct Value;

// How a saved value is stored.
enum class SavedAs {
  kExact,  // statistics, indices: never in fewer bits than float
  kData,   // in the type of the layer's tops
  kBytes,  // whole numbers 0 to 255, one byte each whatever the net's precision
};

// Handed to Layer::EmitForward and EmitBackward. Values are opaque: pass on what bottom(), top(),
// param() and their gradients give. A gradient that nobody wants is null; an op all of whose
// outputs are null is not emitted.
class CAFFE_EXPORT GraphBuilder {
 public:
  GraphBuilder(Graph& graph, int call, bool is_backward)
      : graph_(graph), call_(call), is_backward_(is_backward) {}

  void Emit(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs);

  // Number and shapes of operands.
  int num_bottoms() const;
  int num_tops() const;
  Value* bottom(int i) const;
  Value* top(int i) const;
  Value* param(int i) const;
  const Shape& shape(const Value* value) const;

  // Gradient of the loss with respect to top i: the sum over its readers. Null in forward, and
  // where nothing flows back.
  Value* top_diff(int i);
  // Where to write the gradient for bottom i; null when not wanted. Each call of one layer gives
  // the same value; several readers of a blob are summed by the compiler.
  Value* bottom_diff(int i);
  bool wants_bottom_diff(int i) const;
  // Says that the gradient of bottom i is `value` itself (identity, scaling by 1): costs nothing.
  void SetBottomDiff(int i, Value* value);
  // Gradient of parameter i (added to when accumulating); null when it does not learn.
  Value* param_diff(int i);

  // A value of this layer that backward reads again: the same name gives the same value in both.
  Value* Saved(const std::string& name, const Shape& shape, SavedAs as = SavedAs::kExact);
  // A value that the layer carries from one forward pass to the next, zero at first and after a
  // change of input shapes. Reading it before the op that writes it gives the last pass's.
  Value* State(const std::string& name, const Shape& shape);
  // A value between two ops of this layer.
  Value* Scratch(const std::string& name, const Shape& shape);
  // The same of whole numbers 0 to 255, one byte each whatever the net's precision.
  Value* Bytes(const std::string& name, const Shape& shape);

  // Training phase and gradients wanted at all: whether to emit masks and statistics.
  bool with_backward() const;

 private:
  LayerCall& call() const;
  std::string Prefixed(const std::string& name) const;

  Graph& graph_;
  int call_;
  bool is_backward_;
  std::vector<Value*> bottom_diffs_;

  friend class GradientLowering;
};

}  // namespace caffe
