// ActivePlan: the plan that a net currently runs; replaced by another plan when shapes change.
#pragma once

#include <functional>
#include <memory>

#include "caffe/net/blob_versions.hpp"
#include "caffe/net/net_memory.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/plan_cache.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// If a replacement fails, the old plan stays, unless it was a plan of only the first layers.
class ActivePlan {
 public:
  // Both must outlive it.
  ActivePlan(const NetSource& source, NetMemory& memory) : source_(source), memory_(memory) {}

  // Compiles, creates blobs and parameters on the first call, and binds them.
  void Compile(uint64_t seed, const std::shared_ptr<ThreadClaim>& claim);
  // Drops all plans, because they hold resources that the layers opened.
  void Drop();

  const Graph& graph() const {
    CheckIsThere();
    return *plan_.graph;
  }
  Executor& executor() {
    CheckIsThere();
    return *executor_;
  }
  const Bindings& bindings() const { return executor_->bindings(); }
  // Only for keep-all nets.
  const BlobVersions& versions() const { return versions_; }
  // Throws InvalidArgument after a replacement that failed half-way.
  void CheckIsThere() const;

  // Plans for the current shapes of the input blobs; a cached plan is not compiled again.
  void Reshape();
  // Restores the plan's shapes of blobs.
  void BindAnew();
  // Runs the plan. If a layer finds another shape in its data, plans again and continues from
  // there.
  void Run(Executor::RunOptions run);

 private:
  bool IsOfWholeNet() const { return plan_.graph->calls.size() == source_.layers.size(); }
  Plan CompileFor(const PlanKey& key, size_t num_layers) const;
  Plan CompileWhatFits(const PlanKey& key, size_t done) const;
  void Install(Plan plan);
  void Replan(const std::function<Plan()>& make_plan, int layer);
  void AdaptTo(const Executor::ShapeChange& change);
  void SwitchTo(const PlanKey& key);

  const NetSource& source_;
  NetMemory& memory_;
  Plan plan_;
  std::unique_ptr<Executor> executor_;
  BlobVersions versions_;
  PlanCache cache_;
};

}  // namespace caffe
