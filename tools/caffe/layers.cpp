// caffe layers: the layer types and their options.
#include <iostream>

#include "caffe/layer_catalogue.hpp"
#include "tools/caffe/command.hpp"

namespace caffe::tools {
namespace {

class Layers : public Command {
 public:
  explicit Layers(CLI::App& app) {
    app.add_option("TYPE", type_, "The layer type whose options to list; without it, all types");
  }

  void Run() override {
    std::cout << (type_.empty() ? FormatLayerTypes() : FormatLayerType(type_));
  }

 private:
  std::string type_;
};

const CommandRegistrar<Layers> registrar(
    "layers", {.summary = "list the layer types, or the options of one",
               .about = "Lists the layer types with the fields that hold their options, or one "
                        "type's options with their types and defaults.",
               .examples = "caffe layers\n"
                           "caffe layers Convolution"});

}  // namespace
}  // namespace caffe::tools
