// LayerRegistry: from a prototxt's `type` to a layer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/layer.hpp"

namespace caffe {

class LayerRegistry {
 public:
  using Creator = std::shared_ptr<Layer> (*)(const LayerParameter&);

  // Throws InternalError when the type is taken.
  static void AddCreator(const std::string& type, Creator creator);
  // Throws InvalidArgument naming the nearest known type.
  static std::shared_ptr<Layer> CreateLayer(const LayerParameter& param);
  // Sorted.
  static std::vector<std::string> LayerTypeList();
};

struct LayerRegistrar {
  LayerRegistrar(const char* type, LayerRegistry::Creator creator) {
    LayerRegistry::AddCreator(type, creator);
  }
};

}  // namespace caffe

// Registers class <Type>Layer for `type: "<Type>"`.
#define REGISTER_LAYER_CLASS(Type)                                                             \
  static const ::caffe::LayerRegistrar layer_registrar_##Type(                                 \
      #Type, [](const ::caffe::LayerParameter& param) {                                        \
        return std::static_pointer_cast<::caffe::Layer>(std::make_shared<Type##Layer>(param)); \
      })
