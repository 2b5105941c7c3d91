// A graph of cuDNN that is planned for a device: a plan is chosen and can be run. Equal problems of
// a process share one object.
#pragma once

#include <cudnn_frontend.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "caffe/cuda/plan_choice.hpp"

namespace caffe::cuda {

namespace fe = cudnn_frontend;

// Addresses of a graph's tensors by their numbers.
using CudnnPointers = std::unordered_map<int64_t, void*>;

// The user's constraints on the choice of an engine.
struct EngineChoice {
  bool allows_tensor_cores = true;
  bool is_deterministic = false;
  bool is_timed = true;  // false: cuDNN's first proposal
  int engine = -1;       // number of the only allowed engine; -1: any
  // Text that identifies a timing, including all of the above.
  std::string problem;
  // Plans are built but not timed: several threads do that in parallel before one asks again for
  // the result.
  bool is_ahead = false;
};

// The frontend's graph, with access to the plans that it stores.
class PlannableGraph : public fe::graph::Graph {
 public:
  // Workspace bytes by plan name, for plans that the settings and the workspace limit allow.
  std::map<std::string, int64_t> AllowedPlans();
};

// While it exists, plans of the calling thread are built but not timed.
class PlanningAhead {
 public:
  PlanningAhead() { is_on_ = true; }
  ~PlanningAhead() { is_on_ = false; }
  PlanningAhead(const PlanningAhead&) = delete;
  static bool is_on() { return is_on_; }

 private:
  static thread_local bool is_on_;
};

// The description of a graph that is not planned yet.
struct CudnnDescription {
  std::shared_ptr<PlannableGraph> graph;
  std::map<int64_t, TimedBuffer> tensors;  // by number
  std::string notes = {};                  // facts that the graph's own key does not contain
};

// Thread-safe.
class CudnnProblem : public std::enable_shared_from_this<CudnnProblem> {
 public:
  // Returns the process's object for this problem, or a new one for the description.
  static std::shared_ptr<CudnnProblem> Of(CudaDevice& device, const CudnnDescription& description,
                                          const EngineChoice& choice);

  CudnnProblem(CudaDevice& device, const CudnnDescription& description, EngineChoice choice,
               std::string plan_key);
  ~CudnnProblem();

  // Returns the reason if there is no plan, otherwise an empty text.
  std::string Plan(bool is_ahead);

  // Only after Plan(false).
  size_t workspace_bytes() const;
  // Names of the candidate engines, the chosen one first.
  std::vector<std::string> engines() const;
  // `device` must be the one for which it was planned.
  void Run(CudaDevice& device, CudnnPointers pointers, void* workspace, cudaStream_t stream);

 private:
  class Plans;

  void Build(const PlanCaches& caches);

  mutable std::mutex mutex_;  // guards the non-const members below
  const EngineChoice choice_;
  const bool is_described_;
  const PlanRequest request_;
  std::unique_ptr<Plans> plans_;
  BuiltPlans built_;
  std::string refusal_;
  bool is_built_ = false, is_chosen_ = false;
  size_t chosen_ = 0;
};

}  // namespace caffe::cuda
