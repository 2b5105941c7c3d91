// caffe layers: the layer types and their options.
#include <iostream>

#include "caffe/layer_catalogue.hpp"
#include "tools/caffe/command.hpp"

namespace caffe::tools {
namespace {

void Layers(const std::string& type) {
  std::cout << (type.empty() ? FormatLayerTypes() : FormatLayerType(type));
}

const CommandRegistrar registrar(
    "layers", {.help = "list the layer types, or the options of one: caffe layers Convolution",
               .run = Layers,
               .takes_argument = true});

}  // namespace
}  // namespace caffe::tools
