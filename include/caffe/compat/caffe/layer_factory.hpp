// LayerRegistry<Dtype>: from a prototxt's `type` to a layer, and the macros that register one.
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

  // From now on nets of the whole library have this type. Throws caffe::Error when it is taken.
  static void AddCreator(const string& type, Creator creator);
  // Registered layers, and those of Cortado (as BuiltinLayer). Throws naming the nearest type.
  static Shared<Layer<Dtype>> CreateLayer(const LayerParameter& param);
  // Sorted.
  static vector<string> LayerTypeList();
  // Whether AddCreator has added it.
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

// A shared library of these layers is a plug-in, by the name of its file.
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
