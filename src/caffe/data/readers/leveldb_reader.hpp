// LevelDB databases, which older versions of Caffe created.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"

namespace caffe::data {

// LevelDB provides neither stable record addresses nor a number of records, so records are copied,
// and opening a database counts them.
std::unique_ptr<RecordReader> OpenLevelDbReader(const std::string& path);
std::unique_ptr<RecordWriter> CreateLevelDbWriter(const std::string& path);

}  // namespace caffe::data
