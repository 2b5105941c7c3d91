// What the passes share that let one node do another one's work.
//
//   Fusion fusion(graph);
//   if (fusion.IsServed(conv, epilogue)) fusion.Absorb(conv, relu);
//   fusion.Finish();  // absorbed nodes are gone
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "caffe/graph/graph.hpp"

namespace caffe::passes {

// The epilogue entry that does what a node with one data operand does; nothing where none does.
std::optional<ops::Pointwise> EntryOf(const Node& node);

// Whether the channels of a 16-bit tensor are whole packs of 16 bytes, as the vendor's engines that
// sum for a normalisation want them.
inline bool HasPackedChannels(const Value& value) {
  return value.desc.shape[1] % 8 == 0;
}

// The graph as it is when this is made, and what is absorbed since.
class Fusion {
 public:
  explicit Fusion(Graph& graph);

  // In the order of the schedule.
  const std::vector<Node*>& nodes() const { return nodes_; }
  Node* WriterOf(const Value* value) const;
  const std::vector<Node*>& ReadersOf(const Value* value) const;
  // The node that reads the value, if it is the only one, and nobody else may look at the value.
  Node* OnlyReaderOf(const Value* value) const;
  // The place of the value's writer in the schedule; -1 for what no node writes.
  int64_t StepOf(const Value* value) const;
  int64_t StepOf(const Node& node) const { return steps_.at(&node); }
  bool IsErased(const Node* node) const;

  // Whichever kernel is going to be chosen applies the epilogue.
  bool IsServed(const Node& node, const ops::Epilogue& epilogue) const;

  // A residual block's end: of the two operands of a sum without coefficients, the one that is
  // computed last is added to the other one by the step that makes it, and the sum goes. False
  // where that step's kernels do not serve it, or somebody else reads what it makes.
  bool AbsorbSum(Node& sum);
  // `from` goes; `into` computes its output 0.
  void Absorb(Node& into, Node& from);
  void Erase(Node& node) { erased_.push_back(&node); }
  void Finish();

  // No conversion is going to stand between `from`, which makes the value, and `to`, which reads it
  // and makes a result of the same type.
  static bool HaveOneType(const Node& from, const Operand& read, const Node& to);
  static void AddLayers(Node& into, const Node& from);
  // Inputs between the last one and this one are left out.
  static void SetInput(Node& node, size_t index, const Operand& operand);

 private:
  Graph& graph_;
  std::vector<Node*> nodes_;
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<const Value*, Node*> writers_;
  std::map<const Node*, int64_t> steps_;
  std::vector<Node*> erased_;
};

}  // namespace caffe::passes
