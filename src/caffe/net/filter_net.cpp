#include "caffe/net/filter_net.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "caffe/error.hpp"
#include "caffe/graph/layer_place.hpp"
#include "caffe/net.hpp"

namespace caffe {
namespace {

bool IsIncluded(const LayerParameter& layer, const NetState& state) {
  const auto meets = [&](const NetStateRule& rule) { return Net::StateMeetsRule(state, rule); };
  return layer.include_size() > 0
             ? std::any_of(layer.include().begin(), layer.include().end(), meets)
             : std::none_of(layer.exclude().begin(), layer.exclude().end(), meets);
}

// The excluded layer that makes a blob in other states; null if there is none.
const LayerParameter* FindLeftOutMaker(const NetParameter& definition, const std::string& blob) {
  for (const LayerParameter& layer : definition.layer()) {
    const bool makes_it =
        std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
    if (makes_it && !IsIncluded(layer, definition.state())) return &layer;
  }
  return nullptr;
}

// "include { phase: TRAIN }"
std::string DescribeRules(const LayerParameter& layer) {
  std::string text;
  for (const NetStateRule& rule : layer.include()) {
    text += " include { " + rule.ShortDebugString() + " }";
  }
  for (const NetStateRule& rule : layer.exclude()) {
    text += " exclude { " + rule.ShortDebugString() + " }";
  }
  return text;
}

}  // namespace

bool Net::StateMeetsRule(const NetState& state, const NetStateRule& rule) {
  const auto has_stage = [&](const std::string& stage) {
    return std::find(state.stage().begin(), state.stage().end(), stage) != state.stage().end();
  };
  if (rule.has_phase() && rule.phase() != state.phase()) return false;
  if (rule.has_min_level() && state.level() < rule.min_level()) return false;
  if (rule.has_max_level() && state.level() > rule.max_level()) return false;
  return std::all_of(rule.stage().begin(), rule.stage().end(), has_stage) &&
         std::none_of(rule.not_stage().begin(), rule.not_stage().end(), has_stage);
}

NetParameter Net::FilterNet(const NetParameter& param) {
  NetParameter filtered = param;
  filtered.clear_layer();
  for (const LayerParameter& layer : param.layer()) {
    Require(layer.include_size() == 0 || layer.exclude_size() == 0, "layer '", layer.name(),
            "' has both include and exclude rules; give only one kind");
    if (IsIncluded(layer, param.state())) *filtered.add_layer() = layer;
  }
  return filtered;
}

void CheckNoBottomWasLeftOut(const NetParameter& definition, const NetParameter& filtered) {
  std::set<std::string> made(filtered.input().begin(), filtered.input().end());
  for (const LayerParameter& layer : filtered.layer()) {
    for (const std::string& bottom : layer.bottom()) {
      if (made.count(bottom) > 0) continue;
      const LayerParameter* maker = FindLeftOutMaker(definition, bottom);
      if (maker == nullptr) continue;  // may be misspelt
      const std::string& phase = Phase_Name(definition.state().phase());
      throw InvalidArgument(
          StrCat(PlaceOf(layer), ": unknown bottom '", bottom, "' in phase ", phase, "; layer '",
                 maker->name(), "' makes it, but has", DescribeRules(*maker),
                 "; change that rule, or add a layer that makes it in phase ", phase));
    }
    made.insert(layer.top().begin(), layer.top().end());
  }
}

}  // namespace caffe
