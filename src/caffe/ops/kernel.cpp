#include "caffe/ops/kernel.hpp"

#include <algorithm>
#include <cctype>
#include <memory>

#include "caffe/core/cache_lines.hpp"
#include "caffe/core/plugin_registration.hpp"

namespace caffe {

Kernel PackingItself(Kernel kernel) {
  const PackedOperand packed = std::move(kernel.packed_weights).value();
  const size_t weights_at = WholeLines(kernel.workspace_bytes);
  const size_t scratch_at = weights_at + WholeLines(packed.bytes);
  const auto views = std::make_shared<std::vector<TensorView>>();  // allocated by the first run
  const auto run = [=, run = std::move(kernel.run)](const KernelContext& ctx) {
    char* const workspace = static_cast<char*>(ctx.workspace);
    std::vector<TensorView>& inputs = *views;
    inputs.assign(ctx.inputs.begin(), ctx.inputs.end());
    TensorView converted;
    converted.data = workspace + weights_at;
    KernelContext packing = ctx;
    packing.inputs = std::span(&inputs[packed.operand], 1);
    packing.outputs = std::span(&converted, 1);
    packing.workspace = workspace + scratch_at;
    packed.convert(packing);
    inputs[packed.operand].data = converted.data;
    KernelContext inner = ctx;
    inner.inputs = inputs;
    run(inner);
  };
  kernel.run = run;
  kernel.workspace_bytes = scratch_at + packed.workspace_bytes;
  kernel.packed_weights.reset();
  return kernel;
}

std::vector<Signature> EverySignature() {
  return {{DType::kDouble, DType::kDouble},
          {DType::kFloat, DType::kFloat},
          {DType::kFloat16, DType::kFloat},
          {DType::kBFloat16, DType::kFloat}};
}

std::vector<Signature> WideSignatures() {
  return {{DType::kDouble, DType::kDouble}, {DType::kFloat, DType::kFloat}};
}

bool KernelCandidate::Serves(const Signature& signature) const {
  return std::ranges::find(traits.signatures, signature) != traits.signatures.end();
}

bool KernelCandidate::Serves(const Op& op, const Signature& signature) const {
  const ops::Epilogue* epilogue = op.epilogue();
  const bool is_plain = epilogue == nullptr || epilogue->empty();
  return Serves(signature) && IsFor(op) &&
         (is_plain || (traits.fuses != nullptr && traits.fuses(*epilogue)));
}

KernelRegistry& KernelRegistry::Get() {
  static KernelRegistry registry;
  return registry;
}

void KernelRegistry::Register(DeviceKind device, std::type_index op, std::string_view op_name,
                              KernelCandidate candidate) {
  const auto add = [this, device, op, name = std::string(op_name), candidate] {
    Add(device, op, name, candidate);
  };
  if (!KeepBackForPlugin({.layer_type = "", .check = [] {}, .take_up = add})) add();
}

void KernelRegistry::Add(DeviceKind device, std::type_index op, const std::string& op_name,
                         KernelCandidate candidate) {
  std::vector<KernelCandidate>& list = candidates_[{device, op}];
  // Equal ranks are ordered by name, so that the order does not depend on the linker.
  const auto position = std::find_if(list.begin(), list.end(), [&](const KernelCandidate& other) {
    return std::pair(candidate.rank, candidate.name) < std::pair(other.rank, other.name);
  });
  list.insert(position, std::move(candidate));
  ++names_[device][op_name];
}

const std::vector<KernelCandidate>& KernelRegistry::Candidates(DeviceKind device,
                                                               std::type_index op) const {
  static const std::vector<KernelCandidate> none;
  const auto found = candidates_.find({device, op});
  return found == candidates_.end() ? none : found->second;
}

std::vector<std::string> KernelRegistry::OpNames(DeviceKind device) const {
  std::vector<std::string> names;
  const auto found = names_.find(device);
  if (found == names_.end()) return names;
  for (const auto& [name, candidates] : found->second) names.push_back(name);
  return names;
}

std::string KebabCase(std::string_view camel_case) {
  std::string text;
  for (const char c : camel_case) {
    if (std::isupper(static_cast<unsigned char>(c)) && !text.empty()) text += '-';
    text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

void internal::RegisterKernel(const OpIdentity& op, DeviceKind device, std::string_view name,
                              KernelRank rank, KernelTraits traits, KernelFactory factory) {
  if (traits.signatures.empty()) traits.signatures = op.default_signatures();
  const std::string full = name.empty() ? KebabCase(op.name) + "-reference" : std::string(name);
  KernelRegistry::Get().Register(
      device, op.type, op.name,
      {full, rank, std::move(traits),
       [factory = std::move(factory), full](const KernelRequest& request) {
         KernelOrRefusal answer = factory(request);
         if (Kernel* kernel = std::get_if<Kernel>(&answer)) kernel->name = full;
         return answer;
       }});
}

}  // namespace caffe
