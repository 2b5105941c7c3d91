// LayerRegistry<Dtype>: creates layers from the `type` of a prototxt; macros register layer types.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "../../plugin_descriptor.hpp"
#include "common.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class Layer;

template <typename Dtype>
class LayerRegistry {
 public:
  typedef shared_ptr<Layer<Dtype>> (*Creator)(const LayerParameter&);

  // Adds a type for all nets of the process. Throws caffe::Error if the type is taken.
  static void AddCreator(const string& type, Creator creator);
  // Creates registered layers and those of Cortado (as BuiltinLayer). Throws caffe::Error naming
  // the nearest type if `type` is unknown.
  static Shared<Layer<Dtype>> CreateLayer(const LayerParameter& param);
  // Sorted.
  static vector<string> LayerTypeList();
  // True if AddCreator has added `type`.
  static bool IsForeign(const string& type);

 private:
  LayerRegistry();
};

template <typename Dtype>
class LayerRegisterer {
 public:
  LayerRegisterer(const string& type, shared_ptr<Layer<Dtype>> (*creator)(const LayerParameter&)) {
    LayerRegistry<Dtype>::AddCreator(type, creator);
  }
};

extern template class LayerRegistry<float>;
extern template class LayerRegistry<double>;

CAFFE_BVLC_END

#ifndef CAFFE_COMPAT_IMPLEMENTATION  // Cortado's own macro has the same name

// A shared library with such layers is a plug-in that is named after its file.
CAFFE_PLUGIN("", "");

#define REGISTER_LAYER_CREATOR(type, creator)                                       \
  static ::caffe::LayerRegisterer<float> g_creator_f_##type(#type, creator<float>); \
  static ::caffe::LayerRegisterer<double> g_creator_d_##type(#type, creator<double>)

#define REGISTER_LAYER_CLASS(type)                                                    \
  template <typename Dtype>                                                           \
  ::caffe::shared_ptr<::caffe::Layer<Dtype>> Creator_##type##Layer(                   \
      const ::caffe::LayerParameter& param) {                                         \
    return ::caffe::shared_ptr<::caffe::Layer<Dtype>>(new type##Layer<Dtype>(param)); \
  }                                                                                   \
  REGISTER_LAYER_CREATOR(type, Creator_##type##Layer)

#endif
