#include "caffe/net/active_plan.hpp"

#include <utility>

#include "caffe/error.hpp"

namespace caffe {

void ActivePlan::Compile(uint64_t seed, const std::shared_ptr<ThreadClaim>& claim) {
  Plan plan = CompileFor({}, source_.layers.size());
  if (!memory_.blobs.are_created()) memory_.blobs.Create(*plan.graph, source_.device, claim);
  if (!source_.options.allocate) NetParams::CheckFillers(*plan.graph);
  if (source_.options.allocate && !memory_.params.are_created()) {
    NetMemory::CheckFits(source_, *plan.graph);
    memory_.params.Create(source_.param, *plan.graph, source_.device, seed, source_.loading(),
                          claim);
  }
  Install(std::move(plan));
}

void ActivePlan::Drop() {
  cache_.Clear();
  executor_.reset();
  plan_ = {};
}

void ActivePlan::CheckIsThere() const {
  Require(executor_ != nullptr, "net '", source_.param.name(),
          "' could not be resumed (an earlier error says why); build it again");
}

// Throws, before the current plan is replaced, if the parameters do not fit the new plan.
Plan ActivePlan::CompileFor(const PlanKey& key, size_t num_layers) const {
  Plan plan = CompilePlan(source_, key, num_layers);
  memory_.params.CheckShapes(*plan.graph, [](const Shape& has, const Shape& needs) {
    return StrCat("has shape ", has, " but the new input needs ", needs,
                  "; this layer's input size cannot change");
  });
  return plan;
}

// A shape that was found may not fit shapes that later layers have yet to find. The plan then ends
// before the layer where they do not fit; those later layers have to run first.
Plan ActivePlan::CompileWhatFits(const PlanKey& key, size_t done) const {
  const size_t all = source_.layers.size();
  try {
    return CompileFor(key, all);
  } catch (const InvalidArgument&) {
    if (!source_.options.keep_all || done == all) throw;
    std::optional<Plan> plan;
    size_t fits = done, too_many = all;
    while (too_many - fits > 1) {
      const size_t middle = fits + (too_many - fits) / 2;
      try {
        plan = CompileFor(key, middle);
        fits = middle;
      } catch (const InvalidArgument&) {
        too_many = middle;
      }
    }
    return plan ? std::move(*plan) : CompileFor(key, done);
  }
}

void ActivePlan::Install(Plan plan) {
  plan_ = std::move(plan);
  executor_ = std::make_unique<Executor>(plan_.program);
  BindAnew();
}

void ActivePlan::BindAnew() {
  if (!source_.options.allocate) return;
  const bool keep_all = source_.options.keep_all;
  executor_->Bind(memory_.Bind(*plan_.graph, keep_all));
  if (keep_all) versions_ = BlobVersions(*plan_.graph, memory_.blobs, executor_->bindings());
}

void ActivePlan::Reshape() {
  CheckIsThere();
  const PlanKey wanted{memory_.blobs.ReshapedInputs(*plan_.graph), {}};
  if (!(wanted == plan_.key) || !IsOfWholeNet()) SwitchTo(wanted);
}

// Replaces the plan by one that was in use before, or compiles a new one.
void ActivePlan::SwitchTo(const PlanKey& key) {
  std::optional<PlanCache::Entry> known = cache_.Take(key);
  std::optional<Plan> compiled;
  if (!known) {
    compiled = CompileFor(key, source_.layers.size());
    if (source_.options.allocate)
      NetMemory::CheckFitsInstead(source_, *compiled->graph, *plan_.graph);
  }
  ProgramMemory::Blocks memory = executor_->ReleaseMemory();
  if (IsOfWholeNet()) cache_.Put({std::move(plan_), std::move(executor_)});
  if (known) {
    plan_ = std::move(known->plan);
    executor_ = std::move(known->executor);
    BindAnew();
  } else {
    Install(std::move(*compiled));
  }
  executor_->OfferMemory(std::move(memory));
}

void ActivePlan::Run(Executor::RunOptions run) {
  while (true) {
    if (const std::optional<Executor::ShapeChange> change = executor_->Run(run)) {
      AdaptTo(*change);
      run.first_layer = change->layer;
      continue;
    }
    if (IsOfWholeNet()) return;
    const int done = static_cast<int>(plan_.graph->calls.size());
    Replan([&] { return CompileFor(plan_.key, source_.layers.size()); }, done);
    if (run.last_layer < done) return;
    run.first_layer = done;
  }
}

// Plans again with the shapes that a layer found in its data.
void ActivePlan::AdaptTo(const Executor::ShapeChange& change) {
  PlanKey key = plan_.key;
  key.found_top_shapes[change.layer] = change.tops;
  Replan([&] { return CompileWhatFits(key, static_cast<size_t>(change.layer) + 1); }, change.layer);
}

// Keeps the results of the layers before `layer`.
void ActivePlan::Replan(const std::function<Plan()>& make_plan, int layer) {
  const bool was_whole = IsOfWholeNet();
  Plan previous_plan = plan_;
  std::unique_ptr<Executor> previous = std::move(executor_);
  try {
    Install(make_plan());
  } catch (...) {
    if (was_whole) {
      const bool is_bound_anew = plan_.graph != previous_plan.graph;
      plan_ = std::move(previous_plan);
      executor_ = std::move(previous);
      if (is_bound_anew) BindAnew();
    }
    throw;
  }
  executor_->TakeOver(*previous, layer);
  // A plan of the first layers may know only an earlier version as the last one.
  if (!was_whole) {
    versions_.TakeFromBlobs(Direction::kForward, layer,
                            static_cast<int>(source_.layers.size()) - 1);
  }
}

}  // namespace caffe
