#include "caffe/layer_factory.hpp"

#include <map>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

std::map<std::string, LayerRegistry::Creator>& Creators() {
  static std::map<std::string, LayerRegistry::Creator> creators;
  return creators;
}

}  // namespace

void LayerRegistry::AddCreator(const std::string& type, Creator creator) {
  const bool is_new = Creators().emplace(type, creator).second;
  CAFFE_ASSERT(is_new, "layer type '", type, "' is registered twice");
}

std::shared_ptr<Layer> LayerRegistry::CreateLayer(const LayerParameter& param) {
  const auto found = Creators().find(param.type());
  if (found != Creators().end()) return found->second(param);
  const std::string near = NearestName(param.type(), LayerTypeList());
  throw InvalidArgument(StrCat("unknown layer type '", param.type(), "'",
                               near.empty() ? "" : "; did you mean '" + near + "'?"));
}

std::vector<std::string> LayerRegistry::LayerTypeList() {
  std::vector<std::string> types;
  for (const auto& [type, creator] : Creators()) types.push_back(type);
  return types;
}

}  // namespace caffe
