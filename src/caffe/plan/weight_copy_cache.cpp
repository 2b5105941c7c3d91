#include "caffe/plan/weight_copy_cache.hpp"

#include <algorithm>
#include <utility>

#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

WeightCopyCache::WeightCopyCache(std::shared_ptr<const Program> program, ProgramMemory* memory)
    : program_(std::move(program)), memory_(*memory), made_of_(program_->copies.size()) {}

bool WeightCopyCache::FindOutdated() {
  LookUpVersions();
  return DetachOutdated() && memory_.Refresh();
}

void WeightCopyCache::Update(const std::function<void(size_t copy)>& make) {
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (program_->copies[i].is_read) Make(i, make);
  }
}

// Asks for each version once per run, because versions of held memory change with each call.
void WeightCopyCache::LookUpVersions() {
  versions_.resize(program_->tensors.size());
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) versions_[weights] = 0;
  }
  for (const Program::Copy& copy : program_->copies) {
    for (const int weights : copy.weights) {
      if (versions_[weights] == 0) versions_[weights] = memory_.bindings()[weights]->version();
    }
  }
}

bool WeightCopyCache::IsCurrent(size_t copy) const {
  return std::ranges::equal(program_->copies[copy].weights, made_of_[copy], {},
                            [&](int weights) { return versions_[weights]; });
}

// Others may be reading the shared memory of a copy.
bool WeightCopyCache::DetachOutdated() {
  bool has_detached = false;
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (IsCurrent(i)) continue;
    for (const int result : program_->copies[i].results) {
      SyncedTensor& copy = *memory_.bindings()[result];
      if (!copy.is_shared()) continue;
      copy.Detach();
      has_detached = true;
    }
  }
  return has_detached;
}

void WeightCopyCache::Make(size_t index, const std::function<void(size_t copy)>& make) {
  if (IsCurrent(index)) return;
  const Program::Copy& copy = program_->copies[index];
  for (const int source : copy.sources) Make(static_cast<size_t>(source), make);
  make(index);
  made_of_[index].clear();
  for (const int weights : copy.weights) made_of_[index].push_back(versions_[weights]);
}

void WeightCopyCache::Forget() {
  for (std::vector<uint64_t>& versions : made_of_) versions.clear();
}

std::vector<SyncedTensor*> WeightCopyCache::Results() const {
  std::vector<SyncedTensor*> results;
  for (const Program::Copy& copy : program_->copies) {
    for (const int result : copy.results) results.push_back(memory_.bindings()[result]);
  }
  return results;
}

void WeightCopyCache::ShareWith(const WeightCopyCache& other) {
  const std::vector<SyncedTensor*> mine = Results(), theirs = other.Results();
  for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i)
    mine[i]->ShareIfEqual(*theirs[i]);
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
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (IsResultOf(i, copy.copy) && made_of_[i] == current) return true;
  }
  return false;
}

void WeightCopyCache::MarkCurrent(const KeptCopy& copy) {
  for (size_t i = 0; i < made_of_.size(); ++i) {
    if (IsResultOf(i, copy.copy)) made_of_[i] = {copy.weights->version()};
  }
}

}  // namespace caffe
