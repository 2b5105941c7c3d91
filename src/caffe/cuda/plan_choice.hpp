// Chooses cuDNN's plan for a problem: the cached one, or else the fastest of a few. Building a plan
// takes up to seconds, so the caches are searched before any is built.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caffe/cuda/algorithm_choice.hpp"
#include "caffe/cuda/plan_store.hpp"

namespace caffe::cuda {

// Number of plans that are built and timed, out of those that the heuristics rank first. A plan
// that is compiled at run time takes a second to build, any other a millisecond.
inline constexpr size_t kTimedCompiledPlans = 2;
inline constexpr size_t kTimedReadyPlans = 4;

struct ProposedPlan {
  int64_t index = 0;
  std::string name;
  bool is_compiled = false;  // compiled at run time, when it is built
};

struct BuiltPlan {
  ProposedPlan plan;
  size_t workspace_bytes = 0;
};

// The interface of one cuDNN problem. Used by one thread at a time.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  // Plans that the heuristics propose and the settings allow, best first.
  virtual std::vector<ProposedPlan> Propose() = 0;
  // Builds a plan, so that it can be run, and returns its workspace bytes; empty if it cannot be
  // built within the workspace limit.
  virtual std::optional<size_t> Build(const ProposedPlan& plan) = 0;
  // Serialises a built plan for Restore() in another process; empty if it cannot be saved.
  virtual std::vector<uint8_t> Save(const ProposedPlan& plan) = 0;
  // Like Build(), from a saved plan, whose index becomes 0.
  virtual std::optional<size_t> Restore(std::span<const uint8_t> saved) = 0;
  virtual std::vector<double> Times(std::span<const BuiltPlan> plans,
                                    const MayTryAlgorithm& may_try) = 0;
};

struct PlanRequest {
  std::string key;       // of the problem: AlgorithmKey()
  std::string plan_key;  // of the plan on disk: problem, graph and settings
  bool is_timed = true;  // false: use the heuristics' first plan
  int engine = -1;       // number of the only allowed engine; -1: any
};

// Plans that can be run, in the heuristics' order. Empty if cuDNN has none.
struct BuiltPlans {
  std::vector<BuiltPlan> plans;
  bool is_known = false;  // an earlier process chose the only plan
};

// Storage of the results.
struct PlanCaches {
  AlgorithmCache& algorithms;
  const PlanStore& plans;
};

// Builds only the cached plan if there is one, otherwise those to be timed, or, without timing, the
// first that can be built.
BuiltPlans BuildPlans(PlanSource& source, const PlanRequest& request, const PlanCaches& caches);

// Returns the index of the plan to run, and saves it for the next process.
size_t ChoosePlan(PlanSource& source, const PlanRequest& request, const BuiltPlans& built,
                  const PlanCaches& caches);

// "eng51_k2=1_k13=0" -> 51; -1 for other names.
int EngineNumber(const std::string& name);

}  // namespace caffe::cuda
