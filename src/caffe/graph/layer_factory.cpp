#include "caffe/layer_factory.hpp"

#include <map>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

struct Entry {
  LayerRegistry::Creator creator;
  std::vector<std::string> param_fields;
};

std::map<std::string, Entry>& Entries() {
  static std::map<std::string, Entry> entries;
  return entries;
}

const Entry& Find(const std::string& type) {
  const auto found = Entries().find(type);
  if (found != Entries().end()) return found->second;
  Require(!type.empty(), "the type is missing; write type: \"...\"");
  const std::string near = NearestName(type, LayerRegistry::LayerTypeList());
  throw InvalidArgument(StrCat("unknown layer type '", type, "'",
                               near.empty() ? "" : "; did you mean '" + near + "'?"));
}

// The field of LayerParameter whose message is <Type>Parameter; empty when there is none.
std::string OwnField(const std::string& type) {
  const google::protobuf::Descriptor& layer = *LayerParameter::descriptor();
  for (int i = 0; i < layer.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *layer.field(i);
    if (field.message_type() != nullptr && field.message_type()->name() == type + "Parameter") {
      return field.name();
    }
  }
  return "";
}

}  // namespace

void LayerRegistry::AddCreator(const std::string& type, Creator creator,
                               std::vector<std::string> param_fields) {
  const bool is_new = Entries().emplace(type, Entry{creator, std::move(param_fields)}).second;
  CAFFE_ASSERT(is_new, "layer type '", type, "' is registered twice");
}

void LayerRegistry::ReplaceCreator(const std::string& type, Creator creator) {
  Find(type);  // throws when there is none
  Entries().at(type).creator = creator;
}

std::shared_ptr<Layer> LayerRegistry::CreateLayer(const LayerParameter& param) {
  return Find(param.type()).creator(param);
}

std::vector<std::string> LayerRegistry::LayerTypeList() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : Entries()) types.push_back(type);
  return types;
}

std::vector<std::string> LayerRegistry::ParamFields(const std::string& type) {
  const Entry& entry = Find(type);
  std::vector<std::string> fields;
  if (const std::string own = OwnField(type); !own.empty()) fields.push_back(own);
  fields.insert(fields.end(), entry.param_fields.begin(), entry.param_fields.end());
  return fields;
}

}  // namespace caffe
