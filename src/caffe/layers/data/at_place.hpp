// Where a layer's reader starts, and which of the records are its own.
#pragma once

#include <cstdint>

#include "caffe/layer.hpp"

namespace caffe {

// Sets the fields of a reader's options that RecordSequenceOptions describes. In training, ranks
// alternate record by record, otherwise batch by batch.
template <typename Options>
Options AtPlace(const Layer& layer, const DataPlace& place, uint64_t batch_size, Options options) {
  options.seed = place.seed;
  options.stream = layer.name();
  options.start = place.whole_epochs ? 0 : place.records;
  options.rank = static_cast<uint64_t>(place.rank);
  options.ranks = static_cast<uint64_t>(place.ranks);
  options.block = layer.phase() == TRAIN && !place.whole_epochs ? 1 : batch_size;
  options.whole_epochs = place.whole_epochs;
  return options;
}

}  // namespace caffe
