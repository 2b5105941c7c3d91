// PlanCache: plans of one net for other shapes, so that a shape seen before is not compiled again.
#pragma once

#include <list>
#include <memory>
#include <optional>

#include "caffe/net/plan.hpp"
#include "caffe/plan/executor.hpp"

namespace caffe {

// Holds the plans that are not in use. They keep no memory: the caller of Take() gives the plan the
// memory of the previous one.
class PlanCache {
 public:
  // Enough for an image pyramid, or for the sizes that a detector sees again and again.
  static constexpr size_t kMost = 32;

  struct Entry {
    Plan plan;
    std::unique_ptr<Executor> executor;
  };

  // Evicts the oldest entry if there are more than kMost.
  void Put(Entry entry) {
    entries_.push_front(std::move(entry));
    if (entries_.size() > kMost) entries_.pop_back();
  }
  std::optional<Entry> Take(const PlanKey& key) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(entry->plan.key == key)) continue;
      Entry found = std::move(*entry);
      entries_.erase(entry);
      return found;
    }
    return std::nullopt;
  }
  void Clear() { entries_.clear(); }

 private:
  std::list<Entry> entries_;  // newest first
};

}  // namespace caffe
