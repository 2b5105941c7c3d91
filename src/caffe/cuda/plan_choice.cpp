#include "caffe/cuda/plan_choice.hpp"

#include <glog/logging.h>

#include <cstdlib>

#include "caffe/device/gpu_libraries.hpp"

namespace caffe::cuda {
namespace {

// `name`: the plan that is known to be the fastest; empty if plans are not timed.
std::optional<BuiltPlan> Restored(PlanSource& source, const PlanRequest& request,
                                  const std::optional<std::string>& name, const PlanStore& store) {
  const std::optional<StoredPlan> stored = store.Find(request.plan_key);
  if (!stored || (name && stored->name != *name)) return std::nullopt;
  if (const std::optional<size_t> bytes = source.Restore(stored->bytes))
    return BuiltPlan{{0, stored->name}, *bytes};
  LOG(WARNING) << store.FileOf(request.plan_key)
               << ": cuDNN does not take the plan; it is built again";
  return std::nullopt;
}

void Save(PlanSource& source, const PlanRequest& request, const ProposedPlan& plan,
          const PlanStore& store) {
  const std::vector<uint8_t> bytes = source.Save(plan);
  if (!bytes.empty()) store.Store(request.plan_key, {plan.name, bytes});
}

// Builds plans in order, at most `most` in total and at most `ready` that are not compiled at run
// time. Run-time compiled plans count even if they fail, because if compiling fails, it does so for
// all.
std::vector<BuiltPlan> BuildFirst(PlanSource& source, std::span<const ProposedPlan> plans,
                                  size_t ready, size_t most) {
  std::vector<BuiltPlan> built;
  size_t compiled = kTimedCompiledPlans;
  for (const ProposedPlan& plan : plans) {
    if (built.size() == most) break;
    size_t& left = plan.is_compiled ? compiled : ready;
    if (left == 0) continue;
    const std::optional<size_t> bytes = source.Build(plan);
    if (bytes || plan.is_compiled) --left;
    if (bytes) built.push_back({plan, *bytes});
  }
  return built;
}

}  // namespace

int EngineNumber(const std::string& name) {
  return name.rfind("eng", 0) == 0 ? std::atoi(name.c_str() + 3) : -1;
}

BuiltPlans BuildPlans(PlanSource& source, const PlanRequest& request, const PlanCaches& caches) {
  const std::optional<std::string> known =
      request.is_timed ? caches.algorithms.Find(request.key) : std::nullopt;
  if (known || !request.is_timed) {
    if (const auto plan = Restored(source, request, known, caches.plans)) return {{*plan}, true};
  }
  CountProposedGpuPlans();
  std::vector<ProposedPlan> proposed = source.Propose();
  std::erase_if(proposed, [&](const ProposedPlan& plan) {
    return request.engine >= 0 && EngineNumber(plan.name) != request.engine;
  });
  for (const ProposedPlan& plan : proposed) {
    if (plan.name != known) continue;
    if (const auto built = BuildFirst(source, {&plan, 1}, 1, 1); !built.empty()) {
      Save(source, request, plan, caches.plans);
      return {built, true};
    }
  }
  std::erase_if(proposed, [&](const ProposedPlan& plan) {
    return request.is_timed && caches.algorithms.HasCrashed(request.key, plan.name);
  });
  const size_t most = request.is_timed ? kTimedCompiledPlans + kTimedReadyPlans : 1;
  return {BuildFirst(source, proposed, kTimedReadyPlans, most)};
}

size_t ChoosePlan(PlanSource& source, const PlanRequest& request, const BuiltPlans& built,
                  const PlanCaches& caches) {
  if (built.is_known) return 0;
  size_t chosen = 0;
  if (request.is_timed) {
    std::vector<std::string> names;
    for (const BuiltPlan& plan : built.plans) names.push_back(plan.plan.name);
    chosen = ChooseAlgorithm(
        caches.algorithms, request.key, names,
        [&](const MayTryAlgorithm& may_try) { return source.Times(built.plans, may_try); });
    if (names.size() == 1) caches.algorithms.Store(request.key, names[0]);
    if (caches.algorithms.Find(request.key) != names[chosen]) return chosen;  // nothing was timed
  }
  Save(source, request, built.plans[chosen].plan, caches.plans);
  return chosen;
}

}  // namespace caffe::cuda
