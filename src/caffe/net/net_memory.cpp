#include "caffe/net/net_memory.hpp"

#include <glog/logging.h>

#include <set>

#include "caffe/device/reserved_memory.hpp"
#include "caffe/error.hpp"
#include "caffe/net/memory_shortage.hpp"
#include "caffe/net/plan.hpp"

namespace caffe {

Bindings NetMemory::Bind(const Graph& graph, bool keep_all) {
  Bindings bindings(graph.values().size());
  params.Bind(graph, &bindings);
  blobs.Bind(graph, keep_all, &bindings);
  if (keep_all) blobs.FillLossDiffs(graph, loss_scale);
  std::map<std::string, int> versions;
  std::set<const SyncedTensor*> used;
  for (const Value& value : graph.values()) {
    const int version = versions[value.name]++;
    const bool needs_memory =
        value.kind == ValueKind::kExternal || value.kind == ValueKind::kState || value.is_kept;
    if (!needs_memory || bindings[value.id] != nullptr || value.owner != nullptr) continue;
    std::unique_ptr<SyncedTensor>& tensor = kept_[StrCat(value.name, '#', version)];
    if (!tensor) tensor = std::make_unique<SyncedTensor>(device);
    const bool is_written_first =
        value.kind == ValueKind::kActivation && value.gradient_of == nullptr;
    if (is_written_first) {
      tensor->ResetForOverwriting(value.desc);
    } else {
      tensor->Reset(value.desc);
    }
    bindings[value.id] = tensor.get();
    used.insert(tensor.get());
  }
  for (const Value& value : graph.values()) {  // parts
    SyncedTensor*& tensor = bindings[value.id];
    if (value.owner != nullptr && tensor == nullptr) tensor = bindings[value.owner->id];
  }
  for (const auto& [name, tensor] : kept_) {  // copies of weights that this plan does not read
    if (used.count(tensor.get()) == 0 && tensor->recipe().steps != 0) tensor->Detach();
  }
  return bindings;
}

int64_t NetMemory::WeightBytes() const {
  std::set<const void*> counted;
  int64_t bytes = 0;
  for (const auto& layer : params.by_layer()) {
    for (const std::shared_ptr<Blob>& blob : layer)
      bytes += blob->data_tensor().HeldBytes(&counted);
  }
  for (const auto& [name, tensor] : kept_) {
    if (tensor->recipe().steps != 0) bytes += tensor->HeldBytes(&counted);
  }
  return bytes;
}

namespace {

void Check(const NetSource& source, const MemoryNeed& need, int64_t free, int64_t batch) {
  const std::string shortage = MemoryShortage(need, free, batch);
  if (shortage.empty()) return;
  const std::string where =
      StrCat("net '", source.param.name(), "' (", Phase_Name(source.param.state().phase()), ") on ",
             source.device->description());
  // Only a warning: the reserved part is an estimate, and an earlier net may already have taken it.
  if (need.total() - need.reserved > free)
    throw DeviceError(StrCat(where, ": out of memory: ", shortage));
  LOG(WARNING) << where << ": memory may run out: " << shortage;
}

}  // namespace

int64_t NetMemory::PersistentBytes(const Graph& graph) {
  const PlanMemory memory = MemoryOf(graph, 0);
  return memory.parameters + memory.gradients + memory.outputs + memory.states;
}

void NetMemory::CheckFits(const NetSource& source, const Graph& graph) {
  const std::optional<size_t> free = source.device->FreeBytes();
  if (!free) return;
  // A net for inference takes memory for weights when it first runs, and may get another net's.
  const bool trains = source.param.state().phase() == TRAIN;
  const PlanMemory memory = MemoryOf(graph, trains ? source.options.solver_states : 0);
  const int64_t weights = trains ? memory.parameters + memory.gradients + memory.states : 0;
  const size_t reserved = ReservedBytes(*source.device, source.options.ranks);
  Check(source,
        {.activations = memory.activations + memory.outputs,
         .workspace = memory.workspace,
         .persistent = weights,
         .reserved = static_cast<int64_t>(reserved),
         .solver = memory.solver_state},
        static_cast<int64_t>(*free), BatchOf(graph));
}

void NetMemory::CheckFitsInstead(const NetSource& source, const Graph& graph,
                                 const Graph& current) {
  const std::optional<size_t> free = source.device->FreeBytes();
  if (!free) return;
  const PlanMemory memory = MemoryOf(graph, 0), given_back = MemoryOf(current, 0);
  Check(source, {memory.activations + memory.outputs, memory.workspace},
        static_cast<int64_t>(*free) + given_back.activations + given_back.workspace +
            given_back.outputs,
        BatchOf(graph));
}

}  // namespace caffe
