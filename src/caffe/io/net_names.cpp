#include "caffe/io/net_names.hpp"

#include <algorithm>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe {
namespace {

bool IsControl(char letter) {
  const auto byte = static_cast<unsigned char>(letter);
  return byte < 0x20 || byte == 0x7f;
}

void Check(const char* what, const std::string& name) {
  Require(std::none_of(name.begin(), name.end(), IsControl), "the name of ", what, ", '",
          Printable(name), "', holds control characters; give it another name");
}

template <typename LayerKind>
void CheckLayer(const LayerKind& layer) {
  Check("a layer", layer.name());
  for (const std::string& bottom : layer.bottom()) Check("a bottom", bottom);
  for (const std::string& top : layer.top()) Check("a top", top);
}

}  // namespace

void CheckNames(const NetParameter& net) {
  Check("the net", net.name());
  for (const std::string& input : net.input()) Check("an input", input);
  for (const V1LayerParameter& layer : net.layers()) {
    CheckLayer(layer);
    Check("a layer", layer.layer().name());
    for (const std::string& param : layer.param()) Check("a parameter", param);
  }
  for (const LayerParameter& layer : net.layer()) {
    CheckLayer(layer);
    Check("a layer's type", layer.type());
    for (const ParamSpec& param : layer.param()) Check("a parameter", param.name());
  }
}

}  // namespace caffe
