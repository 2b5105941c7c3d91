// PlanCache: plans of one net for other shapes, so that a shape seen before costs no compilation.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "caffe/plan/executor.hpp"

namespace caffe {

// What a plan of a net depends on once the net is built.
struct PlanKey {
  std::map<std::string, Shape> input_shapes;           // of input blobs that were reshaped
  std::map<int, std::vector<Shape>> found_top_shapes;  // by layer, where they depend on data
  bool operator==(const PlanKey&) const = default;
};

// Holds the plans that are not in use. They keep no memory of their own: whoever takes one gives it
// what the plan before it had.
class PlanCache {
 public:
  static constexpr size_t kMost = 8;

  struct Entry {
    PlanKey key;
    std::shared_ptr<Graph> graph;
    std::unique_ptr<Executor> executor;
  };

  // Evicts the entry that was put first, when there are more than kMost.
  void Put(Entry entry) {
    entries_.push_front(std::move(entry));
    if (entries_.size() > kMost) entries_.pop_back();
  }
  std::optional<Entry> Take(const PlanKey& key) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
      if (!(entry->key == key)) continue;
      Entry found = std::move(*entry);
      entries_.erase(entry);
      return found;
    }
    return std::nullopt;
  }
  void Clear() { entries_.clear(); }

 private:
  std::list<Entry> entries_;  // the last put first
};

}  // namespace caffe
