// Plan: the result of compiling a net for some shapes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/net.hpp"
#include "caffe/net/weights.hpp"
#include "caffe/plan/program.hpp"
#include "caffe/plan_report.hpp"

namespace caffe {

// Everything that plans of one net may differ by.
struct PlanKey {
  std::map<std::string, Shape> input_shapes;           // of input blobs that were reshaped
  std::map<int, std::vector<Shape>> found_top_shapes;  // by layer, where they depend on data
  bool operator==(const PlanKey&) const = default;
};

struct Plan {
  PlanKey key;
  std::shared_ptr<const Graph>
      graph;  // tells which tensor is which blob, and why steps are as they are
  std::shared_ptr<const Program> program;
};

// Everything that is common to the plans of a net.
struct NetSource {
  NetParameter param;  // filtered
  NetOptions options;
  std::shared_ptr<Device> device;
  std::vector<std::shared_ptr<Layer>> layers;
  std::shared_ptr<const BlobRanges> ranges;  // null: no layer is computed in 8 bits
  std::shared_ptr<RankExchange> exchange;    // null: the net computes alone

  // When parameters get their values.
  Loading loading() const {
    return param.state().phase() == TEST && !options.keep_weights ? Loading::kWhenNeeded
                                                                  : Loading::kNow;
  }
};

// Types for layers that do not set any: the definition's default_* fields, its precision, else
// `precision`.
PrecisionDefaults DefaultsOf(const NetParameter& param, Precision precision);

// Compiles the first `num_layers` layers. It prepares for gradients if later layers are missing,
// because these may need them. Throws InvalidArgument if the plan would take more memory than the
// options allow.
Plan CompilePlan(const NetSource& source, const PlanKey& key, size_t num_layers);

// Extent of the first axis of the first input; 0 if the net has no input.
int64_t BatchOf(const Graph& graph);

// Memory of a plan, with `solver_states` tensors for each parameter.
PlanMemory MemoryOf(const Graph& graph, int solver_states);

// Plans of a net with more or less recomputation; the first one recomputes nothing.
std::vector<Plan> CompileTradeOffs(const NetSource& source, const PlanKey& key);

}  // namespace caffe
