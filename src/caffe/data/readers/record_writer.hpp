// Writes new databases of records.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// Fills a new database in `<path>.partial`. Records are written in groups; Finish() writes the
// rest, makes the database durable and renames it to `path`. Without Finish() the destructor
// removes everything, so that a failed conversion leaves nothing that looks like a database
// (io/atomic_folder.hpp).
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;

  // A second record with the same key replaces the first.
  virtual void Put(std::string_view key, std::string_view value) = 0;
  virtual void Finish() = 0;
  // The database's folder until Finish(); files placed there become part of the database.
  virtual const std::string& folder() const = 0;
};

// Creates the folder `path`. Throws InvalidArgument if it already exists, IoError if it cannot be
// created.
CAFFE_EXPORT std::unique_ptr<RecordWriter> CreateRecordWriter(DataParameter::DB backend,
                                                              const std::string& path);

}  // namespace caffe::data
