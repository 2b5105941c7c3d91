#include "caffe/net/data_memory.hpp"

#include <algorithm>

#include "caffe/data_supply.hpp"

namespace caffe {

void DataMemory::Add(const Net& net, uint64_t batches) {
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    const auto* supply = dynamic_cast<const DataSupply*>(layer.get());
    if (supply == nullptr) continue;
    const SupplyMemory memory = supply->MemoryAfter(batches);
    read_ahead_ += memory.read_ahead;
    int64_t& mapped = mapped_[memory.mapped_file];
    mapped = std::max(mapped, memory.mapped);
  }
}

void DataMemory::PutInto(PlanMemory* memory) const {
  memory->read_ahead = read_ahead_;
  memory->databases = 0;
  for (const auto& [file, bytes] : mapped_) memory->databases += bytes;
}

}  // namespace caffe
