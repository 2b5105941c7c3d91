#include "caffe/layer_factory.hpp"

#include <map>
#include <type_traits>

#include "caffe/compat/caffe/layer_factory.hpp"
#include "caffe/compat/caffe/layers/builtin_layer.hpp"
#include "caffe/core/plugin_registration.hpp"
#include "caffe/error.hpp"
#include "compat/layer_bridge.hpp"

namespace caffe::bvlc {
namespace {

template <typename Dtype>
std::map<std::string, typename LayerRegistry<Dtype>::Creator>& Creators() {
  static std::map<std::string, typename LayerRegistry<Dtype>::Creator> creators;
  return creators;
}

template <typename Dtype>
std::shared_ptr<::caffe::Layer> MakeBridgeOf(const LayerParameter& param) {
  const auto creator = Creators<Dtype>().at(param.type());
  return std::make_shared<LayerBridge<Dtype>>(
      param, InMethod("the constructor", [&] { return creator(param); }));
}

// For nets: uses double if the layer's definition says so, or if there is no float version.
std::shared_ptr<::caffe::Layer> MakeBridge(const LayerParameter& param) {
  const bool wants_double = param.forward_type() == DOUBLE;
  const bool has_double = Creators<double>().count(param.type()) > 0;
  const bool has_float = Creators<float>().count(param.type()) > 0;
  if (has_double && (wants_double || !has_float)) return MakeBridgeOf<double>(param);
  return MakeBridgeOf<float>(param);
}

// A layer is registered first for float, then for double.
template <typename Dtype>
void CheckIsFree(const std::string& type) {
  using Other = std::conditional_t<std::is_same_v<Dtype, float>, double, float>;
  const bool is_known = Creators<Other>().count(type) > 0;
  const bool is_taken = Creators<Dtype>().count(type) > 0 ||
                        (!is_known && ::caffe::LayerRegistry::IsRegistered(type));
  Require(!is_taken, "layer type '", type,
          "' is registered twice, by two files or by one and Cortado itself; give one of them "
          "another name");
}

}  // namespace

template <typename Dtype>
void LayerRegistry<Dtype>::AddCreator(const string& type, Creator creator) {
  const auto check = [type] { CheckIsFree<Dtype>(type); };
  const auto add = [type, creator] {
    Creators<Dtype>()[type] = creator;
    if (!::caffe::LayerRegistry::IsRegistered(type)) {
      ::caffe::LayerRegistry::AddCreator(type, &MakeBridge);
    }
  };
  const bool is_first = std::is_same_v<Dtype, float>;
  if (KeepBackForPlugin({is_first ? type : "", check, add})) return;
  check();
  add();
}

template <typename Dtype>
Shared<Layer<Dtype>> LayerRegistry<Dtype>::CreateLayer(const LayerParameter& param) {
  const auto own = Creators<Dtype>().find(param.type());
  if (own != Creators<Dtype>().end()) return own->second(param);
  return std::shared_ptr<Layer<Dtype>>(std::make_shared<BuiltinLayer<Dtype>>(param));
}

template <typename Dtype>
vector<string> LayerRegistry<Dtype>::LayerTypeList() {
  return ::caffe::LayerRegistry::LayerTypeList();
}

template <typename Dtype>
bool LayerRegistry<Dtype>::IsForeign(const string& type) {
  return Creators<Dtype>().count(type) > 0;
}

template class LayerRegistry<float>;
template class LayerRegistry<double>;

}  // namespace caffe::bvlc
