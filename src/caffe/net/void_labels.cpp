#include "caffe/net/void_labels.hpp"

#include <map>
#include <string>

namespace caffe {

void TakeVoidLabels(NetParameter* net) {
  std::map<std::string, int> ignored;  // by label blob
  for (const LayerParameter& layer : net->layer()) {
    if (layer.loss_param().has_ignore_label() && layer.bottom_size() == 2)
      ignored[layer.bottom(1)] = layer.loss_param().ignore_label();
  }
  for (LayerParameter& layer : *net->mutable_layer()) {
    if (layer.type() != "Accuracy" || layer.bottom_size() != 2) continue;
    const auto found = ignored.find(layer.bottom(1));
    const AccuracyParameter& options = layer.accuracy_param();
    if (found != ignored.end() && !options.has_ignore_label() && !options.has_void_label())
      layer.mutable_accuracy_param()->set_void_label(found->second);
  }
}

}  // namespace caffe
