#include "tests/fuzz/dag/net_reducer.hpp"

#include <string>
#include <vector>

namespace caffe::fuzz {
namespace {

void RenameBottoms(const std::string& from, const std::string& to, NetParameter* net) {
  for (LayerParameter& layer : *net->mutable_layer()) {
    for (std::string& bottom : *layer.mutable_bottom()) {
      if (bottom == from) bottom = to;
    }
    for (std::string& top : *layer.mutable_top()) {
      if (top == from) top = to;  // in-place top
    }
  }
}

// Removes a layer; readers of its tops read its first bottom instead.
NetParameter WithoutLayer(const NetParameter& net, int index) {
  NetParameter smaller = net;
  const LayerParameter& layer = net.layer(index);
  smaller.mutable_layer()->DeleteSubrange(index, 1);
  for (const std::string& top : layer.top()) {
    if (layer.bottom_size() > 0 && top != layer.bottom(0))
      RenameBottoms(top, layer.bottom(0), &smaller);
  }
  return smaller;
}

using Change = std::function<bool(LayerParameter*)>;  // false: nothing to change

std::vector<Change> LayerChanges() {
  const auto clear = [](auto has, auto clear_field) {
    return [=](LayerParameter* layer) {
      if (!(layer->*has)()) return false;
      (layer->*clear_field)();
      return true;
    };
  };
  return {clear(&LayerParameter::has_forward_type, &LayerParameter::clear_forward_type),
          clear(&LayerParameter::has_backward_type, &LayerParameter::clear_backward_type),
          clear(&LayerParameter::has_forward_math, &LayerParameter::clear_forward_math),
          clear(&LayerParameter::has_backward_math, &LayerParameter::clear_backward_math),
          clear(&LayerParameter::param_size, &LayerParameter::clear_param),
          clear(&LayerParameter::propagate_down_size, &LayerParameter::clear_propagate_down),
          [](LayerParameter* layer) {
            if (layer->bottom_size() < 3 || layer->top_size() != 1) return false;
            layer->mutable_bottom()->RemoveLast();
            return true;
          }};
}

std::vector<std::function<void(NetParameter*)>> NetChanges() {
  return {[](NetParameter* net) { net->clear_force_backward(); },
          [](NetParameter* net) { net->clear_default_forward_type(); },
          [](NetParameter* net) { net->clear_default_backward_type(); },
          [](NetParameter* net) { net->clear_default_forward_math(); },
          [](NetParameter* net) { net->clear_default_backward_math(); }};
}

}  // namespace

NetParameter ReduceNet(NetParameter net, const std::function<bool(const NetParameter&)>& fails) {
  const auto take = [&](const NetParameter& smaller) {
    if (smaller.SerializeAsString() == net.SerializeAsString() || !fails(smaller)) return false;
    net = smaller;
    return true;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (int i = net.layer_size() - 1; i >= 0; --i) {
      if (net.layer_size() > 1) changed |= take(WithoutLayer(net, i));
    }
    for (int i = 0; i < net.layer_size(); ++i) {
      for (const Change& change : LayerChanges()) {
        NetParameter smaller = net;
        if (change(smaller.mutable_layer(i))) changed |= take(smaller);
      }
    }
    for (const auto& change : NetChanges()) {
      NetParameter smaller = net;
      change(&smaller);
      changed |= take(smaller);
    }
  }
  return net;
}

}  // namespace caffe::fuzz
