// Copies of weights that outlive a run, and the versions of the weights from which they were made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "caffe/plan/program_memory.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {

// A conversion of weights that an update may write itself.
struct KeptCopy {
  const SyncedTensor* weights = nullptr;
  SyncedTensor* copy = nullptr;
  bool operator==(const KeptCopy&) const = default;
};

// A run first makes copies again whose weights have changed since, according to
// SyncedTensor::version(). The copies are those of the program; see graph/weight_copies.hpp. Their
// tensors remember how and from what they were made (SyncedTensor::Recipe), so that a net's plans
// for several shapes, and nets that share weights, have equal copies in common.
class WeightCopyCache {
 public:
  // `memory` must outlive this object.
  WeightCopyCache(std::shared_ptr<const Program> program, ProgramMemory* memory);

  // Finds outdated copies. Those that other nets share get memory of their own, because they will
  // be written; returns true if addresses have changed by that.
  bool FindOutdated();
  // Makes missing and outdated copies that steps read with make(index), which calls MakeSources()
  // if it reads the copies from which this one is made. FindOutdated() must precede it. Copies that
  // only other copies are made from may be freed then.
  using Maker = std::function<void(size_t copy)>;
  void Update(const Maker& make);
  // Makes the copies that a copy is made from, unless they are up to date.
  void MakeSources(size_t copy, const Maker& make);
  // Shares memory with equal copies of another net that has the same weights. Those of the other
  // must be up to date.
  void ShareWith(const WeightCopyCache& other);

  // Conversions that steps read and that an update may write itself; empty if memory is
  // host-accessible.
  std::vector<KeptCopy> Kept() const;
  // True if a copy is up to date with its weights.
  bool IsCurrent(const KeptCopy& copy) const;
  // Says that the code that changed the weights has written this copy, too.
  void MarkCurrent(const KeptCopy& copy);

 private:
  void LookUpVersions();
  const SyncedTensor::Recipe& RecipeOf(size_t copy);
  bool IsCurrent(size_t copy) const;
  void FreeUnread();
  bool DetachOutdated();
  void Make(size_t index, const Maker& make);
  bool IsResultOf(size_t copy, const SyncedTensor* tensor) const;
  SyncedTensor& ResultOf(size_t copy, size_t result = 0) const {
    return *memory_.bindings()[program_->copies[copy].results[result]];
  }

  const std::shared_ptr<const Program> program_;
  ProgramMemory& memory_;
  SyncedTensor::Recipe recipe_;     // the last one of RecipeOf()
  std::vector<uint64_t> versions_;  // of weights, by tensor, at the beginning of the run
};

}  // namespace caffe
