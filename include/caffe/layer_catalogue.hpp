// What layer types there are and which options they take, as text: `caffe layers`.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// An option of a layer: "uint32", "MAX | AVE | STOCHASTIC" or "repeated FillerParameter"; the
// default is as a file has it, or empty; the description is the schema's comment.
struct LayerOption {
  std::string name, type, default_value, description;
};

// The options in one field of LayerParameter, such as convolution_param.
struct LayerOptions {
  std::string field;
  std::vector<LayerOption> options;
};

// Of one type. Throws InvalidArgument naming the nearest type.
CAFFE_EXPORT std::vector<LayerOptions> OptionsOfLayer(const std::string& type);

// One line per type: its name, the fields of LayerParameter that hold its options, and "(not
// supported)" where nets cannot have it.
CAFFE_EXPORT std::string FormatLayerTypes();

// One type: those messages with each field's type, default and, for enums, values. Throws
// InvalidArgument naming the nearest type.
CAFFE_EXPORT std::string FormatLayerType(const std::string& type);

}  // namespace caffe
