// caffe layers: lists the layer types and their options.
#include <iostream>

#include "caffe/io/json.hpp"
#include "caffe/layer_catalogue.hpp"
#include "caffe/layer_factory.hpp"
#include "tools/caffe/command.hpp"
#include "tools/caffe/options.hpp"

namespace caffe::tools {
namespace {

JsonObject TypesToJson() {
  JsonObject root;
  for (const std::string& type : LayerRegistry::LayerTypeList()) {
    JsonObject* layer = AddJson(&root, "types");
    PutJson(layer, "type", type);
    PutJson(layer, "supported", !LayerRegistry::IsRefused(type));
    MakeJsonList(layer, "fields");
    for (const std::string& field : LayerRegistry::ParamFields(type)) {
      AddJson(layer, "fields", field);
    }
  }
  return root;
}

JsonObject OptionsToJson(const std::string& type) {
  JsonObject root;
  PutJson(&root, "type", type);
  MakeJsonList(&root, "fields");
  for (const LayerOptions& options : OptionsOfLayer(type)) {
    JsonObject* field = AddJson(&root, "fields");
    PutJson(field, "field", options.field);
    for (const LayerOption& one : options.options) {
      JsonObject* option = AddJson(field, "options");
      PutJson(option, "name", one.name);
      PutJson(option, "type", one.type);
      PutJson(option, "default", one.default_value);
      PutJson(option, "description", one.description);
    }
  }
  return root;
}

class Layers : public Command {
 public:
  explicit Layers(CLI::App& app) {
    app.add_option("TYPE", type_, "The layer type whose options to list; without it, all types")
        ->type_name(CLI::detail::join(LayerRegistry::LayerTypeList(), "|"));
    AddPlugins(app);
    AddJsonFlag(app, &json_);
  }

  void Run() override {
    if (json_) {
      std::cout << FormatJson(type_.empty() ? TypesToJson() : OptionsToJson(type_));
    } else {
      std::cout << (type_.empty() ? FormatLayerTypes() : FormatLayerType(type_));
    }
  }

 private:
  std::string type_;
  bool json_ = false;
};

const CommandRegistrar<Layers> layers_registrar(
    "layers", {.purpose = Purpose::kInspect,
               .summary = "list the layer types, or the options of one",
               .about = "Lists the layer types with the fields that hold their options, or one "
                        "type's options with their types and defaults.",
               .examples = "caffe layers\n"
                           "caffe layers Convolution"});

}  // namespace
}  // namespace caffe::tools
