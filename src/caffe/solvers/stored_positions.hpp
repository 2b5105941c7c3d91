// Positions in the data, as solver states store them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "caffe/core/hash.hpp"
#include "caffe/io/hdf5_files.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

using DeliveredRecords = std::map<std::string, uint64_t>;  // per data layer

// Where a test net continues reading.
struct TestPosition {
  uint64_t batches = 0;  // tested so far, by all ranks
  DeliveredRecords delivered_records;

  bool operator==(const TestPosition&) const = default;
};

void AddToHash(const DeliveredRecords& delivered, WordHash* hash);
uint64_t HashOf(const std::vector<TestPosition>& tests);

// In binary files.
template <typename Message>
void Store(const DeliveredRecords& delivered, Message* message) {
  for (const auto& [layer, records] : delivered) {
    DataCursor* cursor = message->add_data_cursor();
    cursor->set_layer(layer);
    cursor->set_records(records);
  }
}

template <typename Message>
DeliveredRecords DeliveredIn(const Message& message) {
  DeliveredRecords delivered;
  for (const DataCursor& cursor : message.data_cursor())
    delivered[cursor.layer()] = cursor.records();
  return delivered;
}

void Store(const std::vector<TestPosition>& tests, SolverState* state);
std::vector<TestPosition> TestPositionsIn(const SolverState& state);

// In HDF5 files, within a group.
void Store(const DeliveredRecords& delivered, const std::string& group, Hdf5Writer* writer);
void Store(const std::vector<TestPosition>& tests, const std::string& group, Hdf5Writer* writer);
DeliveredRecords DeliveredIn(const Hdf5Reader& reader, const std::string& group);
std::vector<TestPosition> TestPositionsIn(const Hdf5Reader& reader, const std::string& group);

}  // namespace caffe
