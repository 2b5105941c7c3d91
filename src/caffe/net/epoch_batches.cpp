#include "caffe/epoch_batches.hpp"

#include <optional>
#include <string>

#include "caffe/data_supply.hpp"
#include "caffe/error.hpp"

namespace caffe {

EpochBatches BatchesOfEpoch(const Net& net) {
  std::optional<EpochBatches> found;
  std::string first, unknown;
  for (const std::shared_ptr<Layer>& layer : net.layers()) {
    if (layer->param().bottom_size() > 0) continue;
    const auto* const supply = dynamic_cast<const DataSupply*>(layer.get());
    const EpochBatches own =
        supply == nullptr ? EpochBatches{}
                          : EpochBatches{supply->records_per_epoch(), supply->records_per_batch()};
    if (own.records == 0 || own.batch_size == 0) {
      unknown += StrCat(unknown.empty() ? "" : ", ", "'", layer->name(), "' (", layer->type(), ")");
      continue;
    }
    if (!found) {
      found = own;
      first = layer->name();
      continue;
    }
    Require(own.records == found->records && own.batch_size == found->batch_size, "layer '",
            layer->name(), "' reads ", own.records, " records in batches of ", own.batch_size,
            ", layer '", first, "' ", found->records, " in batches of ", found->batch_size,
            "; give both as many records and the same batch_size");
  }
  Require(found.has_value(), "net '", net.name(), "' does not know how many records it has: ",
          unknown.empty() ? std::string("it has no data layer")
                          : StrCat("of its data layers ", unknown, " none can tell"));
  return *found;
}

}  // namespace caffe
