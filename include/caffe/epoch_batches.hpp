// EpochBatches: the number of batches in one pass over a net's data.
//
//   Net net(definition, {.whole_epochs = true});
//   const EpochBatches epoch = BatchesOfEpoch(net);
//   for (uint64_t i = 0; i < epoch.count(); ++i) {
//     net.Forward(&loss);
//     sum += loss * epoch.RecordsOf(i);
//   }
//   const double mean = sum / epoch.records;
#pragma once

#include <algorithm>
#include <cstdint>

#include "caffe/export.hpp"
#include "caffe/net.hpp"

namespace caffe {

struct EpochBatches {
  uint64_t records = 0;     // in one pass over the data
  uint64_t batch_size = 0;  // records in a full batch

  // Batches of an epoch whose last one may be smaller (NetOptions::whole_epochs).
  uint64_t count() const { return (records + batch_size - 1) / batch_size; }
  // Number of records in batch `index`, counted from 0, of such an epoch.
  uint64_t RecordsOf(uint64_t index) const {
    return std::min(batch_size, records - index * batch_size);
  }
};

// Asks the net's data layers, which must agree if there are several. Throws InvalidArgument if no
// layer knows its number of records, or if they differ; the text names the layer.
CAFFE_EXPORT EpochBatches BatchesOfEpoch(const Net& net);

}  // namespace caffe
