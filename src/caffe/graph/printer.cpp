#include "caffe/graph/printer.hpp"

#include <algorithm>
#include <sstream>

namespace caffe {
namespace {

std::string Reference(const Value* value) {
  return value == nullptr ? "-" : StrCat("%", value->id, " ", value->name);
}

template <typename Operands>
std::string Join(const Operands& values) {
  std::string text;
  for (const Value* value : values) text += (text.empty() ? "" : ", ") + Reference(value);
  return text;
}

std::string Describe(const TensorDesc& desc) {
  return StrCat(desc.shape, " ", Name(desc.dtype),
                desc.layout == Layout::kPlain ? "" : StrCat(" ", Name(desc.layout)));
}

}  // namespace

std::string PrintNode(const Node& node) {
  std::ostringstream out;
  const std::string attributes = node.op.Attributes();
  out << (node.outputs.empty() ? "" : Join(node.outputs) + " = ") << node.op.name();
  if (!attributes.empty()) out << "[" << attributes << "]";
  out << "(" << Join(node.inputs) << ")";
  for (const Value* output : node.outputs) {
    if (output != nullptr) out << "  " << Describe(output->desc);
  }
  const auto any = [&](Accumulation accumulation) {
    return std::ranges::any_of(node.outputs, [&](const Result& output) {
      return output != nullptr && output.accumulation == accumulation;
    });
  };
  if (any(Accumulation::kAlways)) {
    out << "  accumulates";
  } else if (any(Accumulation::kOnRequest)) {
    out << "  accumulates on request";
  }
  if (!node.kernel.name.empty()) out << "  " << node.kernel.name;
  for (const Value* output : node.outputs) {
    if (output != nullptr && output->arena_offset >= 0) out << "  @" << output->arena_offset;
  }
  return std::move(out).str();
}

std::string PrintGraph(const Graph& graph) {
  std::ostringstream out;
  int layer = -1;
  Direction direction = Direction::kForward;
  for (const Node* node : graph.ScheduledNodes()) {
    if (node->layers.front() != layer || node->direction != direction) {
      layer = node->layers.front();
      direction = node->direction;
      out << (direction == Direction::kForward ? "forward " : "backward ") << graph.LayerName(layer)
          << "\n";
    }
    out << "  " << PrintNode(*node) << "\n";
  }
  if (graph.ScheduledNodes().empty()) {
    for (const LayerCall& call : graph.calls) {
      out << call.layer->type() << " " << call.layer->name() << "(" << Join(call.bottoms) << ") -> "
          << Join(call.tops);
      for (const Value* top : call.tops) out << "  " << top->desc.shape;
      if (call.needs_backward) out << "  needs backward";
      out << "\n";
    }
  }
  return std::move(out).str();
}

}  // namespace caffe
