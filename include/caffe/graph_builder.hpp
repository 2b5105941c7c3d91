// GraphBuilder: the interface through which a layer describes its computation.
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

// How a saved or temporary value is stored.
enum class SavedAs {
  kExact,  // statistics, indices: never in fewer bits than float
  kData,   // in the type of the layer's tops
  kBytes,  // whole numbers 0 to 255, one byte each whatever the net's precision
};

// Passed to Layer::EmitForward and EmitBackward. Values are opaque: pass on what bottom(), top(),
// param() and their gradients return. A gradient that is not needed is null; an op whose outputs
// are all null is not emitted.
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

  // Gradient of the loss with respect to top i: the sum over its readers. Null in forward, and if
  // no gradient reaches the top.
  Value* top_diff(int i);
  // Where to write the gradient for bottom i; null if it is not needed. Each call of one layer
  // returns the same value; the compiler sums the gradients of several readers of a blob.
  Value* bottom_diff(int i);
  bool wants_bottom_diff(int i) const;
  // Says that the gradient of bottom i is `value` itself (identity, scaling by 1): costs nothing.
  void SetBottomDiff(int i, Value* value);
  // Gradient of parameter i (added to when accumulating); null if the parameter is not learnable.
  Value* param_diff(int i);

  // A value of this layer that backward reads: the same name returns the same value in both passes.
  Value* Saved(const std::string& name, const Shape& shape, SavedAs as = SavedAs::kExact);
  // A value that the layer carries from one forward pass to the next. It is zero at first and after
  // a change of its shape. Reading it before the op that writes it returns the previous value.
  Value* State(const std::string& name, const Shape& shape);
  // A temporary value passed between two ops of this layer.
  Value* Scratch(const std::string& name, const Shape& shape, SavedAs as = SavedAs::kData);
  // A temporary value with whole numbers 0 to 255, one byte each whatever the net's precision.
  Value* Bytes(const std::string& name, const Shape& shape);

  // True in the training phase if any gradient is needed: then emit masks and statistics.
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
