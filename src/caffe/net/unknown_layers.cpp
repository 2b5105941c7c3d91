#include "caffe/net/unknown_layers.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <set>
#include <string>

#include "caffe/error.hpp"
#include "caffe/layer_factory.hpp"

namespace caffe {

NetParameter WithoutUnknownLayers(const NetParameter& net) {
  NetParameter left = net;
  left.clear_layer();
  std::set<std::string> missing;  // blobs without a producer
  for (const LayerParameter& layer : net.layer()) {
    const bool is_known = LayerRegistry::IsRegistered(layer.type());
    const auto& bottoms = layer.bottom();
    const auto lacking = std::find_if(bottoms.begin(), bottoms.end(), [&](const std::string& blob) {
      return missing.contains(blob);
    });
    if (is_known && lacking == bottoms.end()) {
      for (const std::string& top : layer.top()) missing.erase(top);
      *left.add_layer() = layer;
      continue;
    }
    missing.insert(layer.top().begin(), layer.top().end());
    LOG(WARNING) << "left out: layer '" << layer.name() << "' ("
                 << (is_known ? StrCat(layer.type(), "), which reads '", *lacking, "'")
                              : StrCat("of unknown type '", layer.type(), "')"));
  }
  Require(left.layer_size() > 0 || net.layer_size() == 0,
          "every layer is of an unknown type or needs one that is; load the plug-in that has them");
  return left;
}

}  // namespace caffe
