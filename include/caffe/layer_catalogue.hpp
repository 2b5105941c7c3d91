// What layer types there are and which options they take, as text: `caffe layers`.
#pragma once

#include <string>

namespace caffe {

// One line per type: its name and the fields of LayerParameter that hold its options.
std::string FormatLayerTypes();

// One type: those messages with each field's type, default and, for enums, values. Throws
// InvalidArgument naming the nearest type.
std::string FormatLayerType(const std::string& type);

}  // namespace caffe
