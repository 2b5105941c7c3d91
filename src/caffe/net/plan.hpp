// Plan: what a net is compiled to for some shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {

// What a plan depends on once the net is built.
struct PlanKey {
  std::map<std::string, Shape> input_shapes;           // of input blobs that were reshaped
  std::map<int, std::vector<Shape>> found_top_shapes;  // by layer, where they depend on data
  bool operator==(const PlanKey&) const = default;
};

struct Plan {
  PlanKey key;
  std::shared_ptr<const Graph>
      graph;  // says which tensor is which blob, and why steps are as they are
  std::shared_ptr<const Program> program;
};

// What stays the same from plan to plan of one net.
struct NetSource {
  NetParameter param;  // filtered
  NetOptions options;
  std::shared_ptr<Device> device;
  std::vector<std::shared_ptr<Layer>> layers;
  std::shared_ptr<const BlobRanges> ranges;  // null: no layer is computed in 8 bits
  std::shared_ptr<RankExchange> exchange;  // null: the net computes alone
};

// Types of layers that do not say: the definition's default_* fields, its precision, else
// `precision`.
PrecisionDefaults DefaultsOf(const NetParameter& param, Precision precision);

// Of the first `num_layers` layers. What later ones will want of them is not known, so that
// gradients are prepared for. Throws InvalidArgument where it would take more memory than the
// options allow.
Plan CompilePlan(const NetSource& source, const PlanKey& key, size_t num_layers);

// What a plan takes, with `solver_states` tensors for each parameter.
PlanMemory MemoryOf(const Graph& graph, int solver_states);

// Plans of a net that recompute less or more, the first one nothing.
std::vector<Plan> CompileTradeOffs(const NetSource& source, const PlanKey& key);

}  // namespace caffe
