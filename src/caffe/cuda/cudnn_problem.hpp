// A graph of cuDNN that is planned for a device: a plan is chosen and can be run. Equal problems of
// a process are one object.
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

// Where the tensors of a graph are, by the number that they were given.
using CudnnPointers = std::unordered_map<int64_t, void*>;

// What the user asks of the choice among engines.
struct EngineChoice {
  bool allows_tensor_cores = true;
  bool is_deterministic = false;
  bool is_timed = true;  // false: cuDNN's first guess
  int engine = -1;       // the number of one; -1: any
  // What a timing holds for, all of the above included.
  std::string problem;
  // Plans are built and not yet timed: several threads do that at the same time, before one asks
  // again for the answer.
  bool is_ahead = false;
};

// The frontend's graph, with what it keeps of its plans.
class PlannableGraph : public fe::graph::Graph {
 public:
  // Bytes of workspace by the names of plans that the settings and the workspace's limit allow.
  std::map<std::string, int64_t> AllowedPlans();
};

// While it exists, the calling thread's plans are built and not timed.
class PlanningAhead {
 public:
  PlanningAhead() { is_on_ = true; }
  ~PlanningAhead() { is_on_ = false; }
  PlanningAhead(const PlanningAhead&) = delete;
  static bool is_on() { return is_on_; }

 private:
  static thread_local bool is_on_;
};

// A graph as it is described, not yet planned.
struct CudnnDescription {
  std::shared_ptr<PlannableGraph> graph;
  std::map<int64_t, TimedBuffer> tensors;  // by their number
  std::string notes = {};                  // what the graph's own key does not have
};

// Thread-safe.
class CudnnProblem : public std::enable_shared_from_this<CudnnProblem> {
 public:
  // The one that the process has of this problem, or a new one of the description.
  static std::shared_ptr<CudnnProblem> Of(CudaDevice& device, const CudnnDescription& description,
                                          const EngineChoice& choice);

  CudnnProblem(CudaDevice& device, const CudnnDescription& description, EngineChoice choice,
               std::string plan_key);
  ~CudnnProblem();

  // Returns why there is no plan; empty when there is one.
  std::string Plan(bool is_ahead);

  // After Plan(false).
  size_t workspace_bytes() const;
  // Names of the engines that may serve, the chosen one first.
  std::vector<std::string> engines() const;
  // On the device for which it was planned.
  void Run(CudaDevice& device, CudnnPointers pointers, void* workspace, cudaStream_t stream);

 private:
  class Plans;

  void Build(const PlanCaches& caches);

  mutable std::mutex mutex_;  // of the members below that are not const
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
