#include "caffe/net/first_non_finite.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "caffe/graph/layer_place.hpp"
#include "caffe/tensor/synced_tensor.hpp"

namespace caffe {
namespace {

// Index, in memory order, of the first NaN or infinity; bytes (masks, packed weights) have none.
// Device memory that is not host-accessible is copied in pieces; otherwise nothing is allocated.
std::optional<int64_t> FirstNonFinite(DType dtype, const void* data, size_t bytes, Device& device) {
  if (data == nullptr || dtype == DType::kUInt8) return std::nullopt;
  constexpr size_t kPiece = size_t{16} << 20;
  const auto* const all = static_cast<const char*>(data);
  std::vector<char> copy;
  if (!device.is_host_accessible()) copy.resize(std::min(bytes, kPiece));
  std::optional<int64_t> found;
  VisitFloat(dtype, [&]<typename T>(TypeTag<T>) {
    for (size_t begin = 0; begin < bytes && !found; begin += kPiece) {
      const size_t size = std::min(kPiece, bytes - begin);
      if (!copy.empty()) device.CopyToHost(copy.data(), all + begin, size);
      const T* elements = reinterpret_cast<const T*>(copy.empty() ? all + begin : copy.data());
      for (size_t i = 0; i < size / sizeof(T) && !found; ++i) {
        if (!std::isfinite(static_cast<double>(static_cast<Accum<T>>(elements[i]))))
          found = static_cast<int64_t>(begin / sizeof(T) + i);
      }
    }
  });
  return found;
}

std::string Describe(const Program::Step& step, const std::string& tensor, int64_t element) {
  constexpr std::string_view kGradient = ".diff";
  if (step.direction == Direction::kForward || !tensor.ends_with(kGradient)) {
    return StrCat(step.where, " is the first whose blob '", tensor, "' is not finite (element ",
                  element,
                  "), from parameters that are; look for a logarithm or a division of 0, too "
                  "large a rate, or such values in the data");
  }
  return StrCat(step.where, " is the first whose gradient of blob '",
                tensor.substr(0, tensor.size() - kGradient.size()), "' is not finite (element ",
                element,
                "), although all values of the forward pass are; look for the slope of a root or "
                "a logarithm at 0, or lower the loss weights");
}

}  // namespace

std::string DescribeNonFiniteParameter(
    const NetParams& params, Device& device,
    const std::function<bool(const Net::LearnableParam&)>& is_asked,
    const std::string& why_parameter) {
  for (const Net::LearnableParam& param : params.learnable()) {
    if (!is_asked(param)) continue;
    SyncedTensor& tensor = param.blob->data_tensor();
    if (const auto at =
            FirstNonFinite(tensor.desc().dtype, tensor.data(), tensor.desc().bytes(), device))
      return StrCat("parameter ", param.name, " is not finite at element ", *at, why_parameter);
  }
  return "";
}

std::string DescribeFirstNonFinite(const NetSource& source, const NetParams& params,
                                   ActivePlan& plan, Executor::RunOptions run,
                                   const std::string& why_parameter) {
  Device& device = *source.device;
  std::string found = DescribeNonFiniteParameter(
      params, device, [](const Net::LearnableParam&) { return true; }, why_parameter);
  if (!found.empty()) return found;
  for (const std::shared_ptr<Layer>& layer : source.layers) layer->RepeatBatch();
  run.inspect = [&](const Program::Step& step, std::span<const TensorView> outputs) {
    for (size_t i = 0; i < outputs.size() && found.empty(); ++i) {
      if (step.outputs[i] < 0 || outputs[i].count() == 0) continue;
      if (const std::optional<int64_t> at =
              FirstNonFinite(outputs[i].dtype, outputs[i].data, outputs[i].bytes(), device))
        found = Describe(step, plan.executor().program().tensors[step.outputs[i]].name, *at);
    }
  };
  plan.Run(run);
  return found;
}

}  // namespace caffe
