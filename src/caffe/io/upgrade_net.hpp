// Upgrades net definitions of any age to the current form: `layer { type: "Convolution" }`.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Upgrades `net` in place, in this order: V0 layers to V1 (with padding layers folded away),
// transform fields of data parameters to transform_param, V1 `layers` to `layer`, DeepLab's hole to
// dilation, `input` fields to an Input layer at the beginning, BatchNorm's three `param` entries to
// multipliers of 0 and its blobs to one axis and the current order. Logs each step with
// `source_name`. Returns true if anything changed. Throws InvalidArgument for a definition that
// mixes forms or cannot be read as any of them.
CAFFE_EXPORT bool UpgradeNet(const std::string& source_name, NetParameter* net);

// Moves BVLC's parameter_param, recurrent_param, swish_param and clip_param to their fields in our
// schema. Their numbers 145..148 are enums in NVCaffe's schema, and so in ours; only the wire type
// distinguishes them. For nets read from binary files.
CAFFE_EXPORT void AdoptBvlcFields(const std::string& source_name, NetParameter* net);

}  // namespace caffe
