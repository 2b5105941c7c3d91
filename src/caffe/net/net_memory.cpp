#include "caffe/net/net_memory.hpp"

#include <glog/logging.h>

#include "caffe/device/reserved_memory.hpp"
#include "caffe/error.hpp"
#include "caffe/net/memory_shortage.hpp"

namespace caffe {

Bindings NetMemory::Bind(const Graph& graph, bool keep_all) {
  Bindings bindings(graph.values().size());
  params.Bind(graph, &bindings);
  blobs.Bind(graph, keep_all, &bindings);
  if (keep_all) blobs.FillLossDiffs(graph, loss_scale);
  std::map<std::string, int> versions;
  for (const Value& value : graph.values()) {
    const int version = versions[value.name]++;
    const bool needs_memory =
        value.kind == ValueKind::kExternal || value.kind == ValueKind::kState || value.is_kept;
    if (!needs_memory || bindings[value.id] != nullptr) continue;
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
  }
  return bindings;
}

int64_t NetMemory::PersistentBytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Value& value : graph.values()) {
    const bool is_outside = value.kind != ValueKind::kActivation || value.is_kept;
    if (is_outside && value.owner == nullptr) bytes += static_cast<int64_t>(value.desc.bytes());
  }
  return bytes;
}

void NetMemory::CheckFits(const NetSource& source, const Graph& graph) {
  const std::optional<size_t> free = source.device->FreeBytes();
  if (!free) return;
  int64_t batch = 0;
  for (const LayerCall& call : graph.calls) {
    const bool is_source = call.bottoms.empty() && !call.tops.empty();
    if (is_source && batch == 0) batch = call.tops[0]->desc.shape.LegacyExtent(0);
  }
  const size_t reserved = ReservedBytes(*source.device, source.options.ranks);
  const MemoryNeed need{graph.arena_bytes, graph.workspace_bytes, PersistentBytes(graph),
                        static_cast<int64_t>(reserved)};
  const std::string shortage = MemoryShortage(need, static_cast<int64_t>(*free), batch);
  if (shortage.empty()) return;
  const std::string where =
      StrCat("net '", source.param.name(), "' (", Phase_Name(source.param.state().phase()), ") on ",
             source.device->description());
  // Only a warning: the reserved part is an estimate, and an earlier net may already have taken it.
  if (need.total() - need.reserved > static_cast<int64_t>(*free))
    throw DeviceError(StrCat(where, ": out of memory: ", shortage));
  LOG(WARNING) << where << ": memory may run out: " << shortage;
}

}  // namespace caffe
