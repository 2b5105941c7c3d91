// Pass: transforms a graph. The driver and the order of passes are in standard_passes.cpp.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "caffe/graph/graph.hpp"
#include "caffe/graph/verifier.hpp"

namespace caffe {

class Pass {
 public:
  virtual ~Pass() = default;
  virtual std::string_view name() const = 0;
  // Optional passes change speed or memory, but results only by rounding.
  virtual bool is_optional() const { return false; }
  // Names of parts that can be disabled by themselves.
  virtual std::vector<std::string_view> rows() const { return {}; }
  // Properties that are verified from this pass on.
  virtual Established establishes() const { return {}; }
  virtual void Run(Graph& graph) = 0;
};

using PassList = std::vector<std::unique_ptr<Pass>>;

PassList StandardPasses();

// Runs every pass that the options do not disable, and verifies the graph after each. If dump_dir
// is set, writes <dir>/NN-<pass>.txt.
void RunPasses(const PassList& passes, Graph& graph);

namespace passes {

std::unique_ptr<Pass> MakeInferShapes();
std::unique_ptr<Pass> MakeMarkGradients();
std::unique_ptr<Pass> MakeLowerLayers();
std::unique_ptr<Pass> MakeFakeQuantize();
std::unique_ptr<Pass> MakeLowerGradients();
std::unique_ptr<Pass> MakeSplitOverRanks();
std::unique_ptr<Pass> MakeAssignPrecision();
std::unique_ptr<Pass> MakeFoldConstants();
std::unique_ptr<Pass> MakeFuse();
std::unique_ptr<Pass> MakeFuseImages();
std::unique_ptr<Pass> MakeRecomputeActivations();
std::unique_ptr<Pass> MakeMarkAccumulation();
std::unique_ptr<Pass> MakeQuantize();
std::unique_ptr<Pass> MakeInsertCasts();
std::unique_ptr<Pass> MakeAssignLayouts();
std::unique_ptr<Pass> MakeSimplifyConversions();
std::unique_ptr<Pass> MakeEliminateDeadNodes();
std::unique_ptr<Pass> MakeKeepWeightCopies();
std::unique_ptr<Pass> MakeChannelsLastFilters();
std::unique_ptr<Pass> MakeSplitBatch();
std::unique_ptr<Pass> MakeConcatInPlace();
std::unique_ptr<Pass> MakeSelectKernels();
std::unique_ptr<Pass> MakePlanMemory();

}  // namespace passes
}  // namespace caffe
