#include "caffe/net/plan.hpp"

#include <cstdlib>
#include <utility>

#include "caffe/net/build_graph.hpp"
#include "caffe/passes/pass.hpp"
#include "caffe/tensor/proto_dtype.hpp"

namespace caffe {
namespace {

std::optional<DType> DefaultType(bool has, Type type) {
  if (!has) return std::nullopt;
  return DTypeFromProto(type, "the net's default type");
}

DType TypeOf(Precision precision) {
  switch (precision) {
    case FP32:
      return DType::kFloat;
    case FP16:
      return DType::kFloat16;
    case BF16:
      return DType::kBFloat16;
    case FP64:
      return DType::kDouble;
  }
  throw InvalidArgument("net: unknown precision");
}

PrecisionDefaults DefaultsOf(const NetParameter& param, Precision precision) {
  const bool has_own = param.has_default_forward_type() || param.has_default_backward_type() ||
                       param.has_default_forward_math() || param.has_default_backward_math();
  if (!has_own) {
    const DType type = TypeOf(precision);
    return {type, type, type, type};
  }
  return {DefaultType(param.has_default_forward_type(), param.default_forward_type()),
          DefaultType(param.has_default_backward_type(), param.default_backward_type()),
          DefaultType(param.has_default_forward_math(), param.default_forward_math()),
          DefaultType(param.has_default_backward_math(), param.default_backward_math())};
}

CompileOptions OptionsFor(const NetSource& source, const PlanKey& key, size_t num_layers) {
  const auto& [param, options, device, layers] = source;
  CompileOptions compile;
  compile.device = device;
  compile.is_training_phase = param.state().phase() == TRAIN;
  compile.keep_all = options.keep_all;
  compile.with_backward = options.with_backward;
  compile.force_backward = param.force_backward() || num_layers < layers.size();
  compile.precision = DefaultsOf(param, options.precision);
  compile.kernels = {.strict_fp32 = options.strict_fp32 || param.strict_fp32(),
                     .deterministic = options.deterministic || param.deterministic()};
  compile.disabled_passes = options.disabled_passes;
  compile.input_shapes = key.input_shapes;
  compile.found_top_shapes = key.found_top_shapes;
  if (const char* dump_dir = std::getenv("CAFFE_DUMP_GRAPH")) {
    compile.dump_dir = StrCat(dump_dir, "/", param.name(), "-", Phase_Name(param.state().phase()));
  }
  return compile;
}

}  // namespace

Plan CompilePlan(const NetSource& source, const PlanKey& key, size_t num_layers) {
  auto graph = std::make_shared<Graph>(OptionsFor(source, key, num_layers));
  const auto first = source.layers.begin();
  BuildGraph({first, first + static_cast<std::ptrdiff_t>(num_layers)}, graph.get());
  RunPasses(StandardPasses(), *graph);
  auto program = std::make_shared<const Program>(Assemble(*graph));
  return {key, std::move(graph), std::move(program)};
}

}  // namespace caffe
