// LayerRegistry: creates layers from the `type` of a prototxt.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/layer.hpp"

namespace caffe {

class CAFFE_EXPORT LayerRegistry {
 public:
  using Creator = std::shared_ptr<Layer> (*)(const LayerParameter&);

  // Throws InternalError if the type is taken; while a plug-in is loaded, LoadPlugin() throws
  // instead. `param_fields`: see ParamFields().
  static void AddCreator(const std::string& type, Creator creator,
                         std::vector<std::string> param_fields = {});
  // Registers a type of another Caffe that is not supported: `creator` throws and says what to do.
  static void AddRefused(const std::string& type, Creator creator);
  static bool IsRefused(const std::string& type);
  // Replaces the creator of a registered type, for a module loaded later that can do more, as the
  // Python module does for type "Python".
  static void ReplaceCreator(const std::string& type, Creator creator);
  // Throws InvalidArgument naming the nearest known type.
  static std::shared_ptr<Layer> CreateLayer(const LayerParameter& param);
  // Sorted.
  static std::vector<std::string> LayerTypeList();
  static bool IsRegistered(const std::string& type);
  // Fields of LayerParameter that hold a type's options: the field of message <Type>Parameter and
  // the fields named at its registration. Throws like CreateLayer for an unknown type.
  static std::vector<std::string> ParamFields(const std::string& type);
};

struct LayerRegistrar {
  LayerRegistrar(const char* type, LayerRegistry::Creator creator,
                 std::initializer_list<std::string> param_fields = {}) {
    LayerRegistry::AddCreator(type, creator, param_fields);
  }
};

struct RefusedLayerRegistrar {
  RefusedLayerRegistrar(const char* type, LayerRegistry::Creator creator) {
    LayerRegistry::AddRefused(type, creator);
  }
};

}  // namespace caffe

// Registers class <Type>Layer for `type: "<Type>"`. The names of further option fields follow if
// message <Type>Parameter is not the only one: REGISTER_LAYER_CLASS(Deconvolution,
// "convolution_param").
#define REGISTER_LAYER_CLASS(Type, ...)                                                        \
  static const ::caffe::LayerRegistrar layer_registrar_##Type(                                 \
      #Type,                                                                                   \
      [](const ::caffe::LayerParameter& param) {                                               \
        return std::static_pointer_cast<::caffe::Layer>(std::make_shared<Type##Layer>(param)); \
      },                                                                                       \
      {__VA_ARGS__})
