// Fusions: rewrites that let one node do the work of several. Each is a row of a table; `fuse` and
// `fuse-images` run the rows, in order. A row's file registers it:
//
//   bool FuseRelu(Fusion& fusion, Node& relu) { ... return true; }
//   const FusionRow row({.order = 20, .name = "fuse-relus", .apply = FuseRelu});
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/ops/fused.hpp"

namespace caffe::passes {

class Fusion;

struct FusionRule {
  // Rows run in this order: below kBeforeLayouts as part of `fuse`, then those of `fuse-images`.
  int order = 0;
  std::string_view name;  // for CAFFE_DISABLE_PASSES; several rows may have one name
  // Tries to rewrite the graph around a node, and returns whether it did. A node that is erased is
  // not visited.
  bool (*apply)(Fusion&, Node&) = nullptr;
  std::optional<Direction> direction = {};  // of the nodes that are visited; absent: of either
  bool is_reversed = false;                 // visits the schedule from its end
  bool for_keep_all = false;                // keeps every blob, so keep-all plans may have it
  bool for_any_processor = true;            // programs may have it
};
inline constexpr int kBeforeLayouts = 100;

struct FusionRow {
  explicit FusionRow(const FusionRule& rule);
};

// All rows, in order.
const std::vector<FusionRule>& FusionRules();

// The graph as it is when this is made, and the nodes that a row has erased since.
class Fusion {
 public:
  explicit Fusion(Graph& graph);

  // Refusals go into a report of this row.
  FusionReport& Begin(std::string_view row);

  Graph& graph() const { return graph_; }
  // In the order of the schedule.
  const std::vector<Node*>& nodes() const { return nodes_; }
  Node* WriterOf(const Value* value) const;
  const std::vector<Node*>& ReadersOf(const Value* value) const;
  // The only node that reads the value; null if there are others, or the caller may read it.
  Node* OnlyReaderOf(const Value* value) const;
  // The first node with op T that reads the value and satisfies `accepts`; null if there is none.
  template <typename T, typename Accepts>
  Node* ReaderWith(const Value* value, Accepts accepts) const {
    for (Node* node : ReadersOf(value)) {
      if (node->op.As<T>() != nullptr && !IsErased(node) && accepts(*node)) return node;
    }
    return nullptr;
  }
  // Index of the value's writer in the schedule; -1 if no node writes it.
  int64_t StepOf(const Value* value) const;
  int64_t StepOf(const Node& node) const { return steps_.at(&node); }

  // True if each kernel that may be chosen for the node applies the epilogue.
  bool Serves(const Node& node, const ops::Epilogue& epilogue);
  // Gives `into` the op of both nodes if the device has a kernel for the region that is better than
  // running them in turn. The second node reads results of the first. `into` is one of them, or
  // takes their place: the first if nodes between the two read its results. Neither is erased.
  // `inner` is a result of the first that is not needed afterwards; null: all are.
  bool Merge(const Node& first, const Node& second, const Value* inner, Node& into);
  // True if Merge() would do it.
  bool CanMerge(const Node& first, const Node& second, const Value* inner);

  // `into` computes output 0 of `from`, which is erased.
  void Absorb(Node& into, Node& from);
  void Erase(Node& node) { erased_.push_back(&node); }
  bool IsErased(const Node* node) const;
  void Finish();

 private:
  struct Region;
  // The region that Merge() makes; nothing, and a refusal in the report, if no kernel serves it.
  std::optional<Region> JoinIfServed(const Node& first, const Node& second, const Value* inner);
  // Why no kernel but the reference serves it, empty if the device has none; nothing if one does.
  std::optional<std::string> WhyNot(const Region& region, const Signature& signature) const;
  void Refuse(const Node& node, const std::string& reason);

  Graph& graph_;
  FusionReport* report_ = nullptr;
  std::vector<Node*> nodes_;
  std::map<const Value*, std::vector<Node*>> readers_;
  std::map<const Value*, Node*> writers_;
  std::map<const Node*, int64_t> steps_;
  std::vector<Node*> erased_;
};

// True if `to` reads the value as `from` writes it, and writes a result of the same type: no
// conversion will stand between them.
bool HaveOneType(const Node& from, const Operand& read, const Node& to);
// True if the operand is stored and read in this type, and has this shape.
bool IsLike(const Operand& operand, const Operand& other);
void AddLayers(Node& into, const Node& from);
// Sets an input; inputs between the last one and this one become absent.
void SetInput(Node& node, size_t index, const Operand& operand);
// The input, or an absent one.
Operand InputOf(const Node& node, size_t index);

}  // namespace caffe::passes
