#include "caffe/solvers/stored_positions.hpp"

namespace caffe {

void AddToHash(const DeliveredRecords& delivered, WordHash* hash) {
  for (const auto& [layer, records] : delivered) {
    hash->Add(layer);
    hash->AddWord(records);
  }
}

uint64_t HashOf(const std::vector<TestPosition>& tests) {
  WordHash hash;
  for (const TestPosition& test : tests) {
    hash.AddWord(test.batches);
    AddToHash(test.delivered_records, &hash);
  }
  return hash.value();
}

void Store(const std::vector<TestPosition>& tests, SolverState* state) {
  for (const TestPosition& test : tests) {
    TestCursor* cursor = state->add_test_cursor();
    cursor->set_batches(test.batches);
    Store(test.delivered_records, cursor);
  }
}

std::vector<TestPosition> TestPositionsIn(const SolverState& state) {
  std::vector<TestPosition> tests;
  for (const TestCursor& cursor : state.test_cursor())
    tests.push_back({cursor.batches(), DeliveredIn(cursor)});
  return tests;
}

void Store(const DeliveredRecords& delivered, const std::string& group, Hdf5Writer* writer) {
  int index = 0;
  for (const auto& [layer, records] : delivered) {
    // Identified by index, because a layer's name may contain slashes.
    const std::string cursor = group + "/data_cursor/" + std::to_string(index++);
    writer->WriteString(cursor + "/layer", layer);
    writer->WriteInteger(cursor + "/records", static_cast<int64_t>(records));
  }
}

void Store(const std::vector<TestPosition>& tests, const std::string& group, Hdf5Writer* writer) {
  int index = 0;
  for (const TestPosition& test : tests) {
    const std::string cursor = group + "/test_cursor/" + std::to_string(index++);
    writer->WriteInteger(cursor + "/batches", static_cast<int64_t>(test.batches));
    Store(test.delivered_records, cursor, writer);
  }
}

DeliveredRecords DeliveredIn(const Hdf5Reader& reader, const std::string& group) {
  DeliveredRecords delivered;
  const std::string cursors = group + "/data_cursor";
  if (!reader.Contains(cursors)) return delivered;
  for (const std::string& index : reader.LinksOf(cursors)) {
    const std::string cursor = cursors + "/" + index;
    delivered[reader.ReadString(cursor + "/layer")] =
        static_cast<uint64_t>(reader.ReadInteger(cursor + "/records"));
  }
  return delivered;
}

std::vector<TestPosition> TestPositionsIn(const Hdf5Reader& reader, const std::string& group) {
  std::vector<TestPosition> tests;
  const std::string cursors = group + "/test_cursor";
  if (!reader.Contains(cursors)) return tests;
  for (const std::string& index : reader.LinksOf(cursors)) {
    const std::string cursor = cursors + "/" + index;
    tests.push_back({static_cast<uint64_t>(reader.ReadInteger(cursor + "/batches")),
                     DeliveredIn(reader, cursor)});
  }
  return tests;
}

}  // namespace caffe
