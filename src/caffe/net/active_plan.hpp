// ActivePlan: the plan that a net runs by, exchanged for another when shapes change.
#pragma once

#include <functional>
#include <memory>

#include "caffe/net/blob_versions.hpp"
#include "caffe/net/net_memory.hpp"
#include "caffe/net/plan.hpp"
#include "caffe/net/plan_cache.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// An exchange that fails leaves the plan as it was, unless the plan was of the first layers only.
class ActivePlan {
 public:
  // Both outlive it.
  ActivePlan(const NetSource& source, NetMemory& memory) : source_(source), memory_(memory) {}

  // Compiles, creates blobs and parameters the first time, and binds them.
  void Compile(uint64_t seed, const std::shared_ptr<ThreadClaim>& claim);
  // Forgets all plans: they hold what the layers opened.
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
  // Of a keep-all net.
  const BlobVersions& versions() const { return versions_; }
  // Throws InvalidArgument after an exchange that failed half-way.
  void CheckIsThere() const;

  // For the shapes that the input blobs have; one seen before is not compiled again.
  void Reshape();
  // Gives blobs the plan's shapes again.
  void BindAnew();
  // Plans anew where a layer's data turns out to have another shape, and goes on from there.
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
