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

LayerTypes ResolveTypes(const LayerParameter& layer, bool is_data,
                        const PrecisionDefaults& defaults) {
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
  return types;
}

}  // namespace caffe
