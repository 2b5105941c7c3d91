// Resolves the types that a prototxt requests for each layer.
#pragma once

#include <optional>

#include "caffe/dtype.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// NetParameter's default_forward_type etc.; unset fields as in ResolveTypes().
struct PrecisionDefaults {
  std::optional<DType> forward_type, backward_type, forward_math, backward_math;
  bool in_8_bits = false;     // precision INT8
  bool fakes_8_bits = false;  // precision FAKE_INT8
};

// The defaults of a net with precision `precision`. INT8 is float with quantized products;
// FAKE_INT8 is float that is rounded to the values of INT8.
PrecisionDefaults DefaultsOf(Precision precision);

// The types that one layer requests.
struct LayerTypes {
  // Storage types of its tops and of their gradients.
  DType forward = DType::kFloat, backward = DType::kFloat;
  // Compute types of its convolutions and matrix products.
  DType forward_math = DType::kFloat, backward_math = DType::kFloat;
  // The layer has its own forward_type, which must be used exactly.
  bool has_own_forward = false;
  // Forward is computed in 8 bits if the ranges are known, else in the types above.
  bool in_8_bits = false;
  // Forward computes in the types above with values rounded to 8-bit numbers.
  bool fakes_8_bits = false;

  // Type of the layer's parameters and their gradients, which are never narrower than float.
  DType parameters() const { return forward == DType::kDouble ? forward : DType::kFloat; }
  bool operator==(const LayerTypes&) const = default;
};

// NVCaffe's order: a math field, else the layer's own type of the same direction, else the layer's
// precision, else the net's default math, else its default type, else float. Gradients of data
// layers are float by default. Throws InvalidArgument for types that are not floating-point.
LayerTypes ResolveTypes(const LayerParameter& layer, bool is_data,
                        const PrecisionDefaults& defaults);

}  // namespace caffe
