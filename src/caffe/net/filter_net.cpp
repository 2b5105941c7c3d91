// Include and exclude rules: which layers of a definition belong to a net's state.
#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/net.hpp"

namespace caffe {

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
    const auto meets = [&](const NetStateRule& rule) {
      return StateMeetsRule(param.state(), rule);
    };
    const bool is_included =
        layer.include_size() > 0
            ? std::any_of(layer.include().begin(), layer.include().end(), meets)
            : std::none_of(layer.exclude().begin(), layer.exclude().end(), meets);
    if (is_included) *filtered.add_layer() = layer;
  }
  return filtered;
}

}  // namespace caffe
