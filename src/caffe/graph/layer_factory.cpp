#include "caffe/layer_factory.hpp"

#include <map>
#include <mutex>
#include <shared_mutex>

#include "caffe/core/layer_types.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/plugin_registration.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

struct Entry {
  LayerRegistry::Creator creator;
  std::vector<std::string> param_fields;
  bool is_refused = false;
};

// Plug-ins may add entries while other threads build nets.
struct Registry {
  std::shared_mutex mutex;
  std::map<std::string, Entry> entries;
};

Registry& Get() {
  static Registry registry;
  return registry;
}

const bool names_are_set = [] {
  SetLayerTypeNames(&LayerRegistry::LayerTypeList);
  return true;
}();

std::vector<std::string> TypesOf(const Registry& registry) {
  std::vector<std::string> types;
  for (const auto& [type, entry] : registry.entries) types.push_back(type);
  return types;
}

Entry Find(const std::string& type) {
  Registry& registry = Get();
  const std::shared_lock lock(registry.mutex);
  const auto found = registry.entries.find(type);
  if (found != registry.entries.end()) return found->second;
  Require(!type.empty(), "the type is missing; write type: \"...\"");
  const std::string near = NearestName(type, TypesOf(registry));
  throw InvalidArgument(StrCat("unknown layer type '", type, "'",
                               near.empty() ? "; load the plug-in that has it (--plugin), or leave "
                                              "the layer out (--lenient)"
                                            : "; did you mean '" + near + "'?"));
}

// The field of LayerParameter with message type <Type>Parameter; empty if there is none.
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
  const auto add = [type, entry = Entry{creator, std::move(param_fields)}] {
    Registry& registry = Get();
    const std::unique_lock lock(registry.mutex);
    return registry.entries.emplace(type, entry).second;
  };
  const bool is_kept_back = KeepBackForPlugin(
      {.layer_type = type,
       .check = [type] { Require(!IsRegistered(type), "layer type '", type, "' is taken"); },
       .take_up = [add] { add(); }});
  if (is_kept_back) return;
  const bool is_new = add();
  CAFFE_ASSERT(is_new, "layer type '", type, "' is registered twice");
}

void LayerRegistry::AddRefused(const std::string& type, Creator creator) {
  const bool is_new = Get().entries.emplace(type, Entry{creator, {}, /*is_refused=*/true}).second;
  CAFFE_ASSERT(is_new, "layer type '", type, "' is registered twice");
}

bool LayerRegistry::IsRefused(const std::string& type) {
  return Find(type).is_refused;
}

void LayerRegistry::ReplaceCreator(const std::string& type, Creator creator) {
  Find(type);  // throws if there is none
  Registry& registry = Get();
  const std::unique_lock lock(registry.mutex);
  registry.entries.at(type).creator = creator;
}

std::shared_ptr<Layer> LayerRegistry::CreateLayer(const LayerParameter& param) {
  return Find(param.type()).creator(param);
}

std::vector<std::string> LayerRegistry::LayerTypeList() {
  Registry& registry = Get();
  const std::shared_lock lock(registry.mutex);
  return TypesOf(registry);
}

bool LayerRegistry::IsRegistered(const std::string& type) {
  Registry& registry = Get();
  const std::shared_lock lock(registry.mutex);
  return registry.entries.contains(type);
}

std::vector<std::string> LayerRegistry::ParamFields(const std::string& type) {
  const Entry entry = Find(type);
  std::vector<std::string> fields;
  if (const std::string own = OwnField(type); !own.empty()) fields.push_back(own);
  fields.insert(fields.end(), entry.param_fields.begin(), entry.param_fields.end());
  return fields;
}

}  // namespace caffe
