// LayerRegistry: from a prototxt's `type` to a layer.
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

  // Throws InternalError when the type is taken; while a plug-in is loaded, LoadPlugin() does
  // instead. `param_fields`: see ParamFields().
  static void AddCreator(const std::string& type, Creator creator,
                         std::vector<std::string> param_fields = {});
  // A type of another Caffe that nets cannot have here: `creator` throws and says what to do.
  static void AddRefused(const std::string& type, Creator creator);
  static bool IsRefused(const std::string& type);
  // From now on `creator` makes the layers of a type that is registered: for a module loaded later
  // that can do more, as the Python module can for type "Python".
  static void ReplaceCreator(const std::string& type, Creator creator);
  // Throws InvalidArgument naming the nearest known type.
  static std::shared_ptr<Layer> CreateLayer(const LayerParameter& param);
  // Sorted.
  static std::vector<std::string> LayerTypeList();
  static bool IsRegistered(const std::string& type);
  // Fields of LayerParameter that hold a type's options: that of message <Type>Parameter, and those
  // named at its registration. Throws as CreateLayer for an unknown type.
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

// Registers class <Type>Layer for `type: "<Type>"`. Names of option fields follow where message
// <Type>Parameter is not all there is: REGISTER_LAYER_CLASS(Deconvolution, "convolution_param").
#define REGISTER_LAYER_CLASS(Type, ...)                                                        \
  static const ::caffe::LayerRegistrar layer_registrar_##Type(                                 \
      #Type,                                                                                   \
      [](const ::caffe::LayerParameter& param) {                                               \
        return std::static_pointer_cast<::caffe::Layer>(std::make_shared<Type##Layer>(param)); \
      },                                                                                       \
      {__VA_ARGS__})
