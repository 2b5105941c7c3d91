// Which of cuDNN's plans serves a problem: the known one, else the fastest of a few. Plans cost up
// to seconds each to build, so the caches are asked before any is built.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/plan_store.hpp"

namespace caffe::cuda {

// Plans that are built and timed, of those that the heuristics put first. A plan that is compiled
// at run time takes a second to build, another one a millisecond.
inline constexpr size_t kTimedCompiledPlans = 2;
inline constexpr size_t kTimedReadyPlans = 4;

struct ProposedPlan {
  int64_t index = 0;
  std::string name;
  bool is_compiled = false;  // at run time, when it is built
};

struct BuiltPlan {
  ProposedPlan plan;
  size_t workspace_bytes = 0;
};

// cuDNN's side of one problem. Used by one thread at a time.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  // Plans that the heuristics propose and the settings allow, best first.
  virtual std::vector<ProposedPlan> Propose() = 0;
  // Bytes of workspace of the plan, which can be run from now on; nothing where it cannot be built
  // within the workspace's limit.
  virtual std::optional<size_t> Build(const ProposedPlan& plan) = 0;
  // A built plan for Restore() in another process; empty where it cannot be saved.
  virtual std::vector<uint8_t> Save(const ProposedPlan& plan) = 0;
  // As Build(), of what was saved. The plan's index is 0 from now on.
  virtual std::optional<size_t> Restore(std::span<const uint8_t> saved) = 0;
  virtual std::vector<double> Times(std::span<const BuiltPlan> plans,
                                    const MayTryAlgorithm& may_try) = 0;
};

struct PlanRequest {
  std::string key;       // of the problem: AlgorithmKey()
  std::string plan_key;  // of the plan on disk: the problem, the graph and the settings
  bool is_timed = true;  // false: the heuristics' first
  int engine = -1;       // only plans of the engine with this number; -1: any
};

// Plans that can be run, in the heuristics' order. Empty: cuDNN has none.
struct BuiltPlans {
  std::vector<BuiltPlan> plans;
  bool is_known = false;  // the one plan is that of an earlier process
};

// Where what is known is kept.
struct PlanCaches {
  AlgorithmCache& algorithms;
  const PlanStore& plans;
};

// The known plan alone, else those that are to be timed, else the first that can be built.
BuiltPlans BuildPlans(PlanSource& source, const PlanRequest& request, const PlanCaches& caches);

// Index of the plan to run, which the next process knows.
size_t ChoosePlan(PlanSource& source, const PlanRequest& request, const BuiltPlans& built,
                  const PlanCaches& caches);

// "eng51_k2=1_k13=0" -> 51; -1 for other names.
int EngineNumber(const std::string& name);

}  // namespace caffe::cuda
