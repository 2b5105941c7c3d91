#include "caffe/io/upgrade_inputs.hpp"

#include <glog/logging.h>

#include <algorithm>

#include "caffe/error.hpp"

namespace caffe {
namespace {

constexpr int kLegacyAxes = 4;  // num, channels, height, width

// Keeps as many shapes as there are inputs, in one of the two forms, or none.
void DropLeftovers(const std::string& source_name, NetParameter* net) {
  const int inputs = net->input_size(), dims = kLegacyAxes * inputs;
  const auto warn = [&](int left_out, const char* field, const char* reason) {
    LOG_IF(WARNING, left_out > 0) << source_name << ": " << left_out << ' ' << field
                                  << " left out, as in BVLC Caffe: " << reason;
  };
  if (net->input_shape_size() > 0 && inputs > 0) {
    warn(net->input_dim_size(), "input_dim", "input_shape is given, too, and wins");
    net->clear_input_dim();
  }
  const char* const reason = inputs == 0 ? "the net has no input" : "there are fewer input";
  if (net->input_dim_size() > dims) {
    warn(net->input_dim_size() - dims, "input_dim", reason);
    net->mutable_input_dim()->Truncate(dims);
  }
  if (net->input_shape_size() > inputs) {
    warn(net->input_shape_size() - inputs, "input_shape", reason);
    net->mutable_input_shape()->DeleteSubrange(inputs, net->input_shape_size() - inputs);
  }
}

bool IsTop(const NetParameter& net, const std::string& blob) {
  return std::any_of(net.layer().begin(), net.layer().end(), [&](const LayerParameter& layer) {
    return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
  });
}

LayerParameter InputLayer(const NetParameter& net) {
  const int inputs = net.input_size();
  Require(net.input_dim_size() == 0 || net.input_dim_size() == kLegacyAxes * inputs, "has ", inputs,
          " input and ", net.input_dim_size(), " input_dim; each input takes ", kLegacyAxes,
          " of them (num, channels, height, width), ", kLegacyAxes * inputs, " in all");
  Require(net.input_shape_size() == 0 || net.input_shape_size() == inputs, "has ", inputs,
          " input but ", net.input_shape_size(), " input_shape; give one for each");
  LayerParameter layer;
  std::string name = "input";
  const auto is_taken = [&](const std::string& candidate) {
    return std::any_of(net.layer().begin(), net.layer().end(),
                       [&](const LayerParameter& other) { return other.name() == candidate; });
  };
  while (is_taken(name)) name += '_';
  layer.set_name(name);
  layer.set_type("Input");
  *layer.mutable_top() = net.input();
  InputParameter* param = layer.mutable_input_param();
  *param->mutable_shape() = net.input_shape();
  for (int i = 0; i < net.input_dim_size(); ++i) {
    if (i % kLegacyAxes == 0) param->add_shape();
    param->mutable_shape(i / kLegacyAxes)->add_dim(net.input_dim(i));
  }
  return layer;
}

}  // namespace

bool UpgradeInputs(const std::string& source_name, NetParameter* net) {
  if (net->input_size() + net->input_dim_size() + net->input_shape_size() == 0) return false;
  DropLeftovers(source_name, net);
  if (net->input_dim_size() + net->input_shape_size() == 0) {
    auto* inputs = net->mutable_input();
    const auto made =
        std::stable_partition(inputs->begin(), inputs->end(),
                              [&](const std::string& input) { return !IsTop(*net, input); });
    for (auto input = made; input != inputs->end(); ++input) {
      LOG(WARNING) << source_name << ": input '" << *input
                   << "' left out, as in BVLC Caffe: it has no shape, and a layer makes the blob";
    }
    inputs->erase(made, inputs->end());
  }
  if (net->input_size() > 0) {
    *net->add_layer() = InputLayer(*net);
    auto* layers = net->mutable_layer();
    std::rotate(layers->pointer_begin(), layers->pointer_end() - 1, layers->pointer_end());
  }
  net->clear_input();
  net->clear_input_dim();
  net->clear_input_shape();
  return true;
}

}  // namespace caffe
