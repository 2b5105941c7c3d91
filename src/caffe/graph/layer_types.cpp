#include "caffe/graph/layer_types.hpp"

#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

DType MathOf(std::optional<DType> own_math, std::optional<DType> own_type,
             std::optional<DType> default_math, std::optional<DType> default_type) {
  if (own_math) return *own_math;
  if (own_type) return *own_type;
  return default_math.value_or(default_type.value_or(DType::kFloat));
}

}  // namespace

PrecisionDefaults DefaultsOf(Precision precision) {
  const auto all = [](DType type) { return PrecisionDefaults{type, type, type, type}; };
  switch (precision) {
    case FP32:
      return all(DType::kFloat);
    case FP16:
      return all(DType::kFloat16);
    case BF16:
      return all(DType::kBFloat16);
    case FP64:
      return all(DType::kDouble);
    case INT8: {
      PrecisionDefaults defaults = all(DType::kFloat);
      defaults.in_8_bits = true;
      return defaults;
    }
    case FAKE_INT8: {
      PrecisionDefaults defaults = all(DType::kFloat);
      defaults.fakes_8_bits = true;
      return defaults;
    }
  }
  throw InvalidArgument("unknown precision");
}

LayerTypes ResolveTypes(const LayerParameter& layer, bool is_data,
                        const PrecisionDefaults& of_net) {
  const PrecisionDefaults defaults = layer.has_precision() ? DefaultsOf(layer.precision()) : of_net;
  const auto own = [](bool has, Type type, const char* field) -> std::optional<DType> {
    if (!has) return std::nullopt;
    return DTypeFromProto(type, field);
  };
  const auto forward = own(layer.has_forward_type(), layer.forward_type(), "forward_type");
  const auto backward = own(layer.has_backward_type(), layer.backward_type(), "backward_type");
  LayerTypes types;
  types.has_own_forward = forward.has_value();
  types.forward = forward.value_or(defaults.forward_type.value_or(DType::kFloat));
  types.backward =
      backward.value_or(is_data ? DType::kFloat : defaults.backward_type.value_or(DType::kFloat));
  types.forward_math = MathOf(own(layer.has_forward_math(), layer.forward_math(), "forward_math"),
                              forward, defaults.forward_math, defaults.forward_type);
  types.backward_math =
      MathOf(own(layer.has_backward_math(), layer.backward_math(), "backward_math"), backward,
             defaults.backward_math, defaults.backward_type);
  // A layer's own types take precedence. In a net trained for 8 bits, a layer's INT8 means
  // rounding.
  const bool may_round = !forward && !layer.has_forward_math();
  types.fakes_8_bits =
      may_round && (defaults.fakes_8_bits || (defaults.in_8_bits && of_net.fakes_8_bits));
  types.in_8_bits = may_round && defaults.in_8_bits && !types.fakes_8_bits;
  return types;
}

}  // namespace caffe
