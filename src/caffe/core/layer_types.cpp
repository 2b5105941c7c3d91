#include "caffe/core/layer_types.hpp"

namespace caffe {
namespace {

std::vector<std::string> (*layer_type_names)() = nullptr;

}  // namespace

std::vector<std::string> LayerTypeNames() {
  return layer_type_names == nullptr ? std::vector<std::string>() : layer_type_names();
}

void SetLayerTypeNames(std::vector<std::string> (*names)()) {
  layer_type_names = names;
}

}  // namespace caffe
