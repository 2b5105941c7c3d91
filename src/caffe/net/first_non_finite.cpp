#include "caffe/net/first_non_finite.hpp"

#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "caffe/graph/layer_place.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// Element, in memory order, of the first NaN or infinity; bytes (masks, packed weights) have none.
std::optional<int64_t> FirstNonFinite(const TensorView& view, Device& device) {
  if (view.data == nullptr || view.dtype == DType::kUInt8) return std::nullopt;
  std::vector<char> bytes(view.bytes());
  device.CopyToHost(bytes.data(), view.data, bytes.size());
  std::optional<int64_t> found;
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    const T* elements = reinterpret_cast<const T*>(bytes.data());
    const auto count = static_cast<int64_t>(bytes.size() / sizeof(T));
    for (int64_t i = 0; i < count && !found; ++i) {
      if (!std::isfinite(static_cast<double>(static_cast<Accum<T>>(elements[i])))) found = i;
    }
  });
  return found;
}

}  // namespace

std::string DescribeFirstNonFinite(const NetSource& source, const NetParams& params,
                                   ActivePlan& plan, const RandomState& random,
                                   const std::string& why_parameter) {
  Device& device = *source.device;
  for (const Net::LearnableParam& param : params.learnable()) {
    SyncedTensor& tensor = param.blob->data_tensor();
    if (const auto at = FirstNonFinite({tensor.desc(), tensor.data()}, device)) {
      return StrCat("parameter ", param.name, " is not finite at element ", *at, why_parameter);
    }
  }
  for (const std::shared_ptr<Layer>& layer : source.layers) layer->RepeatBatch();
  std::string found;
  Executor::RunOptions run;
  run.random = random;
  run.inspect = [&](const Program::Step& step, std::span<const TensorView> outputs) {
    for (size_t i = 0; i < outputs.size() && found.empty(); ++i) {
      if (step.outputs[i] < 0 || outputs[i].count() == 0) continue;
      if (const std::optional<int64_t> at = FirstNonFinite(outputs[i], device)) {
        const std::string& blob = plan.executor().program().tensors[step.outputs[i]].name;
        found =
            StrCat(step.where, " is the first whose blob '", blob, "' is not finite (element ", *at,
                   "), from parameters that are; look for a logarithm or a division of 0, too "
                   "large a rate, or such values in the data");
      }
    }
  };
  plan.Run(run);
  return found;
}

}  // namespace caffe
