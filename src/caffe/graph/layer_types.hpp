// The types that a prototxt asks for, layer by layer.
#pragma once

#include <optional>

#include "caffe/dtype.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// NetParameter's default_forward_type and its like; an unset field is as in ResolveTypes().
struct PrecisionDefaults {
  std::optional<DType> forward_type, backward_type, forward_math, backward_math;
  bool in_8_bits = false;     // precision INT8
  bool fakes_8_bits = false;  // precision FAKE_INT8
};

// The defaults of a net whose precision is `precision`. INT8 is float whose products are quantised,
// FAKE_INT8 float that is rounded to what INT8 holds.
PrecisionDefaults DefaultsOf(Precision precision);

// What one layer asks for.
struct LayerTypes {
  // Storage of its tops, and of their gradients.
  DType forward = DType::kFloat, backward = DType::kFloat;
  // Arithmetic of its convolutions and matrix products.
  DType forward_math = DType::kFloat, backward_math = DType::kFloat;
  // The layer has a forward_type of its own, which is obeyed to the letter.
  bool has_own_forward = false;
  // Forward is to be computed in 8 bits where ranges are known, and is in the types above
  // elsewhere.
  bool in_8_bits = false;
  // Forward computes in the types above with values that are rounded to what 8 bits hold.
  bool fakes_8_bits = false;

  // Of the layer's parameters and their gradients, which are never narrower than float.
  DType parameters() const { return forward == DType::kDouble ? forward : DType::kFloat; }
  bool operator==(const LayerTypes&) const = default;
};

// NVCaffe's rules: a math field, else the layer's own type of the same direction, else the layer's
// precision, else the net's
// default math, else its default type, else float. Gradients of data layers are float by default.
// Throws InvalidArgument for types that are none of numbers.
LayerTypes ResolveTypes(const LayerParameter& layer, bool is_data,
                        const PrecisionDefaults& defaults);

}  // namespace caffe
