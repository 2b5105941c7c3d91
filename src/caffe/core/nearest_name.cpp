#include "caffe/core/nearest_name.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "caffe/core/names_elsewhere.hpp"

namespace caffe {
namespace {

// A shorter prefix matches too many names.
constexpr size_t kShortestStem = 3;

std::string ToLower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return lower;
}

// Optimal string alignment distance; keeps the last three rows of the table.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> before_previous(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before_previous[j - 2] + 1);
    }
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

}  // namespace

std::string NearestName(std::string_view name, const std::vector<std::string>& candidates) {
  const std::string wanted = ToLower(name);
  for (const NameElsewhere& other : kNamesElsewhere) {
    if (wanted != other.name) continue;
    const std::string here(other.here);
    const auto is_known = std::find(candidates.begin(), candidates.end(), here);
    if (here.empty() || is_known != candidates.end()) return here;
  }
  std::string nearest;
  size_t fewest_edits = std::string::npos;
  for (const std::string& candidate : candidates) {
    const size_t edits = EditDistance(wanted, ToLower(candidate));
    const size_t allowed = std::max<size_t>(1, std::max(wanted.size(), candidate.size()) / 3);
    if (edits <= allowed && edits < fewest_edits) {
      fewest_edits = edits;
      nearest = candidate;
    }
  }
  if (!nearest.empty() || wanted.size() < kShortestStem) return nearest;
  for (const std::string& candidate : candidates) {
    const bool begins = ToLower(candidate).compare(0, wanted.size(), wanted) == 0;
    if (begins && (nearest.empty() || candidate.size() < nearest.size())) nearest = candidate;
  }
  return nearest;
}

}  // namespace caffe
