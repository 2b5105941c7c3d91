// Brings net definitions of any age into today's form: `layer { type: "Convolution" }`.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Upgrades `net` in place, in this order: V0 layers to V1 (with padding layers folded away),
// transform fields inside data parameters to transform_param, V1 `layers` to `layer`, DeepLab's
// hole to dilation, `input` fields to an Input layer placed first, BatchNorm's three `param`
// entries to multipliers of 0 and its blobs to one axis and today's order. Each step is logged with
// `source_name`. Returns whether anything changed. Throws InvalidArgument for a definition that
// mixes forms or cannot be read as any of them.
CAFFE_EXPORT bool UpgradeNet(const std::string& source_name, NetParameter* net);

// Moves BVLC's parameter_param, recurrent_param, swish_param and clip_param to their places in our
// schema. Their numbers 145..148 hold enums in NVCaffe's schema, which is ours; only the wire
// type tells them apart. For nets read from binary files.
CAFFE_EXPORT void AdoptBvlcFields(const std::string& source_name, NetParameter* net);

}  // namespace caffe
