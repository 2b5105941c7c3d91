#include "caffe/io/layer_position.hpp"

#include <algorithm>
#include <filesystem>

#include "caffe/core/paths.hpp"
#include "caffe/io/expand/expand.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

using google::protobuf::FieldDescriptor;

// Returns the name in "layer 'name'..."; empty for other messages.
std::string LayerNameIn(const std::string& message) {
  const std::string before = "layer '";
  const size_t end = message.find('\'', before.size());
  if (!message.starts_with(before) || end == std::string::npos) return "";
  return message.substr(before.size(), end - before.size());
}

// Old and new layer messages have include rules of the same form.
template <typename Layer>
bool MayHavePhase(const Layer& layer, Phase phase) {
  const auto is_of_other = [&](const NetStateRule& rule) {
    return rule.has_phase() && rule.phase() != phase;
  };
  return layer.include_size() == 0 ||
         !std::all_of(layer.include().begin(), layer.include().end(), is_of_other);
}

template <typename Layers>
int FindLayer(const Layers& layers, const std::string& name, Phase phase) {
  for (int i = 0; i < layers.size(); ++i) {
    if (layers[i].name() == name && MayHavePhase(layers[i], phase)) return i;
  }
  return -1;
}

}  // namespace

ErrorPlace PositionOfLayer(const std::string& file, Phase phase, const std::string& message) {
  const std::string name = LayerNameIn(message);
  if (name.empty() || !IsPlainFile(file)) return {};
  const SourceText text = ReadDefinitionText(file, *NetParameter::descriptor());
  NetParameter net;
  const TextPositions positions(text, &net);
  if (!positions.parses()) return {};

  const char* field = "layer";
  int index = FindLayer(net.layer(), name, phase);
  if (index < 0) {
    field = "layers";
    index = FindLayer(net.layers(), name, phase);
  }
  if (index < 0) return {};
  const FieldDescriptor* descriptor = NetParameter::descriptor()->FindFieldByName(field);
  return positions.PlaceOf(descriptor, index);
}

}  // namespace caffe
