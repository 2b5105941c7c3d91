// Databases of records, read in key order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// One record, borrowed: both views are valid as long as the reader that returned them or, if the
// reader had to copy them, as long as `owner`.
struct Record {
  std::string_view key;
  std::string_view value;
  std::shared_ptr<const void> owner = nullptr;
  uint32_t part = 0;  // which of several databases it is from
};

// A cursor over a database as it was when opened. Not thread-safe, but the bytes of records may be
// read from any thread.
class RecordReader {
 public:
  virtual ~RecordReader() = default;

  // Number of records.
  virtual uint64_t count() const = 0;
  // Moves to the first record; false if there is none.
  virtual bool First(Record* record) = 0;
  // Moves to the last record; false if there is none, or if that would require reading everything.
  virtual bool Last(Record* /*record*/) { return false; }
  // Moves to the following record; false at the end.
  virtual bool Next(Record* record) = 0;
  // Moves to the record with this key; false if there is none.
  virtual bool Seek(std::string_view key, Record* record) = 0;
  // Moves to the record after `record`, after the last one to the first; false if there is none.
  virtual bool After(const Record& record, Record* next) {
    return (Seek(record.key, next) && Next(next)) || First(next);
  }
  // True if At() works. Each record is then read only when it is used; without an index, a shuffled
  // order requires reading all records at the start, and a rank also reads those of other ranks.
  virtual bool has_index() const { return false; }
  // Moves to record number `index` in key order; false if there is none.
  virtual bool At(uint64_t /*index*/, Record* /*record*/) { return false; }
  // Bytes of memory-mapped files after all records have been read.
  virtual uint64_t mapped_bytes() const { return 0; }
  // The database of a record, if this reads several; else empty.
  virtual std::string SourceOf(const Record& /*record*/) const { return ""; }
};

// Opens an existing database. Its files determine the backend; `backend` is used in the error text
// if there are none. Throws IoError if it is missing or damaged.
CAFFE_EXPORT std::unique_ptr<RecordReader> OpenRecordReader(DataParameter::DB backend,
                                                            const std::string& path);

// Parses "lmdb" or "leveldb", as in the tools' --backend.
CAFFE_EXPORT DataParameter::DB ParseBackend(std::string_view name);

}  // namespace caffe::data
