// A fingerprint of a source's records.
#pragma once

#include <string>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

// Returns a text such as "60000 records, the first '00000000', the last '00059999', their hash
// 7982", which is equal for copies of the data regardless of their files' layout. Opens the source
// again and reads a few records. Empty for a source that cannot be read twice, such as a camera.
// Throws IoError.
std::string ContentOf(const RecordSource& records);

}  // namespace caffe::data
