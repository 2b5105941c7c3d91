// Reads LMDB databases without copying.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"

namespace caffe::data {

std::unique_ptr<RecordReader> OpenLmdbReader(const std::string& path);

}  // namespace caffe::data
