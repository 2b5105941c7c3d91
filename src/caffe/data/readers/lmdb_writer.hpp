// Creates new LMDB databases.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_writer.hpp"

namespace caffe::data {

struct LmdbWriterOptions {
  // Initial size of the memory map; it doubles whenever the records do not fit.
  uint64_t map_bytes = uint64_t{1} << 30;
};

std::unique_ptr<RecordWriter> CreateLmdbWriter(const std::string& path,
                                               const LmdbWriterOptions& options = {});

}  // namespace caffe::data
