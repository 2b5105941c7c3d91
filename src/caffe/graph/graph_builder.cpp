#include "caffe/graph_builder.hpp"

#include <algorithm>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/convert.hpp"

namespace caffe {

LayerCall& GraphBuilder::call() const {
  return graph_.calls[call_];
}

std::string GraphBuilder::Prefixed(const std::string& name) const {
  return call().layer->name() + "/" + name;
}

int GraphBuilder::num_bottoms() const {
  return static_cast<int>(call().bottoms.size());
}
int GraphBuilder::num_tops() const {
  return static_cast<int>(call().tops.size());
}
Value* GraphBuilder::bottom(int i) const {
  const auto rounded = call().rounded_bottoms.find(i);
  return rounded != call().rounded_bottoms.end() ? rounded->second.value : call().bottoms.at(i);
}
Value* GraphBuilder::top(int i) const {
  return call().tops.at(i);
}
Value* GraphBuilder::param(int i) const {
  const auto rounded = call().rounded_params.find(i);
  return rounded != call().rounded_params.end() ? rounded->second : call().param_values.at(i);
}
const Shape& GraphBuilder::shape(const Value* value) const {
  return value->desc.shape;
}
bool GraphBuilder::with_backward() const {
  return call().needs_backward && graph_.options.with_backward;
}

void GraphBuilder::Emit(Op op, std::vector<Value*> inputs, std::vector<Value*> outputs) {
  const bool is_wanted =
      outputs.empty() ||
      std::any_of(outputs.begin(), outputs.end(), [](Value* value) { return value != nullptr; });
  if (!is_wanted) return;
  Node& node = graph_.Append(std::move(op), std::move(inputs), std::move(outputs));
  node.layers = {call_};
  node.direction = is_backward_ ? Direction::kBackward : Direction::kForward;
}

Value* GraphBuilder::top_diff(int i) {
  const auto found = graph_.gradients.find(top(i));
  return found == graph_.gradients.end() ? nullptr : found->second;
}

bool GraphBuilder::wants_bottom_diff(int i) const {
  return call().bottom_needs_gradient.at(i);
}

Value* GraphBuilder::bottom_diff(int i) {
  if (!wants_bottom_diff(i)) return nullptr;
  bottom_diffs_.resize(num_bottoms());
  if (bottom_diffs_[i] == nullptr) {
    const Value& value = *bottom(i);
    Value& gradient = graph_.NewValue(value.name + ".diff", value.desc.shape, value.desc.dtype,
                                      ValueKind::kActivation);
    gradient.at_least_float = value.at_least_float;
    gradient.gradient_of = &value;
    gradient.layer = value.layer;
    bottom_diffs_[i] = &gradient;
  }
  return bottom_diffs_[i];
}

void GraphBuilder::SetBottomDiff(int i, Value* value) {
  if (!wants_bottom_diff(i)) return;
  if (graph_.options.keep_all) {  // each blob's diff has memory of its own
    Emit(ops::View{}, {value}, {bottom_diff(i)});
    return;
  }
  bottom_diffs_.resize(num_bottoms());
  bottom_diffs_[i] = value;
}

Value* GraphBuilder::param_diff(int i) {
  return call().param_needs_gradient.at(i) ? call().param_grads.at(i) : nullptr;
}

Value* GraphBuilder::Saved(const std::string& name, const Shape& shape, SavedAs as) {
  Value*& value = call().saved[name];
  if (value == nullptr) {
    value = Scratch(name, shape, as);
  }
  return value;
}

Value* GraphBuilder::State(const std::string& name, const Shape& shape) {
  Value* value = Saved(name, shape);
  value->kind = ValueKind::kState;
  return value;
}

Value* GraphBuilder::Scratch(const std::string& name, const Shape& shape, SavedAs as) {
  const DType type = as == SavedAs::kBytes ? DType::kUInt8 : DType::kFloat;
  Value& value = graph_.NewValue(Prefixed(name), shape, type, ValueKind::kActivation);
  value.layer = call_;
  value.at_least_float = as == SavedAs::kExact;
  return &value;
}

Value* GraphBuilder::Bytes(const std::string& name, const Shape& shape) {
  return Scratch(name, shape, SavedAs::kBytes);
}

}  // namespace caffe
