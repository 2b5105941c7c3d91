#include "caffe/core/join_refusals.hpp"

#include <algorithm>

namespace caffe {
namespace {

std::string ReasonOf(const std::string& refusal) {
  return refusal.substr(refusal.find(": "));
}

}  // namespace

std::vector<std::string> JoinRefusals(const std::vector<std::string>& refusals) {
  std::vector<std::string> joined;
  for (const std::string& refusal : refusals) {
    const auto same = std::ranges::find(joined, ReasonOf(refusal), ReasonOf);
    if (same == joined.end()) {
      joined.push_back(refusal);
    } else {
      same->insert(same->find(": "), ", " + refusal.substr(0, refusal.find(": ")));
    }
  }
  return joined;
}

}  // namespace caffe
