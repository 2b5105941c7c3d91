// EpochBatches: how many batches of a net are one pass over its data.
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
  uint64_t records = 0;     // of one pass over the data
  uint64_t batch_size = 0;  // records of a full batch

  // Batches of an epoch whose last one may be smaller (NetOptions::whole_epochs).
  uint64_t count() const { return (records + batch_size - 1) / batch_size; }
  // Records of batch `index`, counted from 0, of such an epoch.
  uint64_t RecordsOf(uint64_t index) const {
    return std::min(batch_size, records - index * batch_size);
  }
};

// By the net's data layers, of which several must agree. Throws InvalidArgument where none of them
// knows how many records it has, or where they differ; the text says which layer.
CAFFE_EXPORT EpochBatches BatchesOfEpoch(const Net& net);

}  // namespace caffe
