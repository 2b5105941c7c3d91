// The order in which records are used: epochs, shuffling, sharding among ranks, resuming.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/readers/record_reader.hpp"

namespace caffe::data {

struct RecordSequenceOptions {
  std::string source;  // for messages
  std::function<std::unique_ptr<RecordReader>()> open;
  bool shuffle = false;   // a new order in each epoch
  bool cache = false;     // keep records in memory once read
  bool precache = false;  // read all records at once
  bool announce_rewinds = false;
  uint64_t seed = 0;
  std::string stream;  // name of the random stream
  uint64_t skip = 0;   // records skipped at the very start
  uint64_t start = 0;  // records already used by all ranks together
  // From `start` on, ranks alternate with `block` records each; this rank's turn is `rank`.
  uint64_t rank = 0;
  uint64_t ranks = 1;
  uint64_t block = 1;
  // No block contains records of two epochs: the last block of an epoch is shortened. Requires skip
  // and start to be 0.
  bool whole_epochs = false;
};

// An endless sequence over a database. Every record has a number that counts the records of all
// epochs and ranks; random choices for a record depend only on that number.
class RecordSequence {
 public:
  struct Item {
    Record record;
    uint64_t number = 0;  // in the endless sequence
    uint64_t index = 0;   // in the database
  };

  // Throws IoError if the database is missing or empty.
  explicit RecordSequence(const RecordSequenceOptions& options);

  // Records per epoch.
  uint64_t count() const { return count_; }
  const std::string& source() const { return options_.source; }
  // The database of this record, which is one of several if the sequence mixes them.
  std::string SourceOf(const Item& item) const;
  bool whole_epochs() const { return options_.whole_epochs; }

  // Bytes of memory-mapped files, and of copied records and their index, after `records` have been
  // used.
  uint64_t MappedBytesAfter(uint64_t records) const;
  uint64_t CopiedBytesAfter(uint64_t records) const;

  // Records left in this rank's turn.
  uint64_t LeftOfBlock();
  // The next record. Its bytes stay valid as long as the sequence lives. Thread-safe, like After.
  Item Next();
  // The record that Next() will return.
  Item Peek();
  // The record after `item` in the database (the first one after the last), with the same number:
  // the replacement for a record that cannot be used.
  Item After(const Item& item);

 private:
  Item Locate(uint64_t number);
  uint64_t BlockAt(uint64_t number) const;
  // Estimated bytes of the database's first `records` records.
  uint64_t BytesOf(uint64_t records) const;
  void BuildIndex();
  void ReadAllRecords();
  // The record with this index in the database. Requires an order.
  Record RecordAt(uint64_t index);
  // Reports a damaged database: its number of records is wrong.
  [[noreturn]] void ThrowWrongCount(uint64_t found, bool are_more) const;
  void CacheRecord(uint64_t index);
  bool FitsInMemory() const;
  void StartEpoch(uint64_t epoch);
  void StepCursor();
  void AnnounceRewind() const;

  const RecordSequenceOptions options_;
  std::unique_ptr<RecordReader> reader_;
  std::unique_ptr<RecordReader> side_reader_;  // for After(), so that the main cursor does not move
  const RandomStream shuffle_random_;
  uint64_t count_ = 0;

  std::mutex mutex_;
  uint64_t number_ = 0;  // of the next record
  uint64_t taken_of_block_ = 0;

  // Without an index: the cursor, at `cursor_position_` counted over all epochs.
  Record cursor_record_;
  uint64_t cursor_position_ = 0;

  // With an index, required for shuffling and caching: this epoch's order, and all records unless
  // the reader has an index itself.
  bool is_indexed_ = false;
  bool caches_ = false;
  std::vector<Record> records_;
  std::vector<uint32_t> order_;
  uint64_t epoch_ = 0;

  std::vector<bool> is_cached_;
  std::deque<std::string> cached_blocks_;
};

// "SOURCE: record 18230 ('00018230')".
std::string Describe(const RecordSequence& sequence, const RecordSequence::Item& item);

}  // namespace caffe::data
