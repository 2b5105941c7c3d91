// Lists layer types and their options as text for `caffe layers`.
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"

namespace caffe {

// An option of a layer. Its type is "uint32", "MAX | AVE | STOCHASTIC" or "repeated
// FillerParameter"; the default is written as in a file, or empty; the description is the schema's
// comment.
struct LayerOption {
  std::string name, type, default_value, description;
};

// The options in one field of LayerParameter, such as convolution_param.
struct LayerOptions {
  std::string field;
  std::vector<LayerOption> options;
};

// Options of one type. Throws InvalidArgument naming the nearest type.
CAFFE_EXPORT std::vector<LayerOptions> OptionsOfLayer(const std::string& type);

// One line per type: its name, the fields of LayerParameter that hold its options, and "(not
// supported)" if nets cannot contain it.
CAFFE_EXPORT std::string FormatLayerTypes();

// The option messages of one type, with each field's type, default and, for enums, values. Throws
// InvalidArgument naming the nearest type.
CAFFE_EXPORT std::string FormatLayerType(const std::string& type);

}  // namespace caffe
