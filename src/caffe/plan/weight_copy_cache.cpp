#include "caffe/plan/weight_copy_cache.hpp"

#include <algorithm>
#include <utility>

namespace caffe {

WeightCopyCache::WeightCopyCache(std::shared_ptr<const Program> program, ProgramMemory* memory)
    : program_(std::move(program)), memory_(*memory) {}

bool WeightCopyCache::FindOutdated() {
  LookUpVersions();
  return DetachOutdated() && memory_.Refresh();
}

void WeightCopyCache::Update(const Maker& make) {
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    if (program_->copies[i].is_read) Make(i, make);
  }
  if (program_->frees_unread_copies) FreeUnread();
}

// Asks for each version once per run, because versions of held memory change with each call.
void WeightCopyCache::LookUpVersions() {
  versions_.resize(program_->tensors.size());
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) versions_[weights] = 0;
  }
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) {
      if (versions_[weights] != 0) continue;
      SyncedTensor& tensor = *memory_.bindings()[weights];
      tensor.WriteBackAll();
      versions_[weights] = tensor.version();
    }
  }
}

// Allocates nothing after the first calls.
const SyncedTensor::Recipe& WeightCopyCache::RecipeOf(size_t copy) {
  recipe_.steps = program_->copies[copy].recipe;
  recipe_.versions.clear();
  for (const int weights : program_->copies[copy].weights)
    recipe_.versions.push_back(versions_[weights]);
  return recipe_;
}

bool WeightCopyCache::IsCurrent(size_t copy) const {
  const SyncedTensor::Recipe& made = ResultOf(copy).recipe();
  return made.steps == program_->copies[copy].recipe &&
         std::ranges::equal(program_->copies[copy].weights, made.versions, {},
                            [&](int weights) { return versions_[weights]; });
}

// Others may be reading the shared memory of a copy.
bool WeightCopyCache::DetachOutdated() {
  bool has_detached = false;
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    if (IsCurrent(i)) continue;
    for (size_t k = 0; k < program_->copies[i].results.size(); ++k) {
      SyncedTensor& copy = ResultOf(i, k);
      if (!copy.is_shared()) continue;
      copy.Detach();
      has_detached = true;
    }
  }
  return has_detached;
}

void WeightCopyCache::MakeSources(size_t copy, const Maker& make) {
  for (const int source : program_->copies[copy].sources) Make(static_cast<size_t>(source), make);
}

void WeightCopyCache::Make(size_t index, const Maker& make) {
  if (IsCurrent(index)) return;
  const Program::Copy& copy = program_->copies[index];
  make(index);
  for (size_t k = 0; k < copy.results.size(); ++k) {
    ResultOf(index, k).MarkWritten();
    ResultOf(index, k).SetRecipe(RecipeOf(index));
  }
}

void WeightCopyCache::FreeUnread() {
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    if (program_->copies[i].is_read || ResultOf(i).recipe().steps == 0) continue;
    for (size_t k = 0; k < program_->copies[i].results.size(); ++k) ResultOf(i, k).Detach();
  }
}

void WeightCopyCache::ShareWith(const WeightCopyCache& other) {
  LookUpVersions();
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    const SyncedTensor::Recipe& recipe = RecipeOf(i);
    for (size_t j = 0; j < other.program_->copies.size(); ++j) {
      if (!(other.ResultOf(j).recipe() == recipe)) continue;
      for (size_t k = 0; k < program_->copies[i].results.size(); ++k)
        ResultOf(i, k).ShareWith(other.ResultOf(j, k));
    }
  }
}

std::vector<KeptCopy> WeightCopyCache::Kept() const {
  std::vector<KeptCopy> kept;
  if (program_->device->is_host_accessible()) return kept;
  const Bindings& bindings = memory_.bindings();
  for (const Program::Copy& copy : program_->copies) {
    const bool is_conversion = copy.weights.size() == 1 && copy.results.size() == 1;
    if (copy.is_read && is_conversion)
      kept.push_back({bindings[copy.weights[0]], bindings[copy.results[0]]});
  }
  return kept;
}

bool WeightCopyCache::IsResultOf(size_t copy, const SyncedTensor* tensor) const {
  return memory_.bindings()[program_->copies[copy].results[0]] == tensor;
}

bool WeightCopyCache::IsCurrent(const KeptCopy& copy) const {
  const std::vector<uint64_t> current = {copy.weights->version()};
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    if (IsResultOf(i, copy.copy) &&
        copy.copy->recipe() == SyncedTensor::Recipe{program_->copies[i].recipe, current}) {
      return true;
    }
  }
  return false;
}

void WeightCopyCache::MarkCurrent(const KeptCopy& copy) {
  for (size_t i = 0; i < program_->copies.size(); ++i) {
    if (IsResultOf(i, copy.copy))
      copy.copy->SetRecipe({program_->copies[i].recipe, {copy.weights->version()}});
  }
}

}  // namespace caffe
