// What tells the records of one source from those of another.
#pragma once

#include <string>

#include "caffe/data/record_source.hpp"

namespace caffe::data {

// "60000 records, the first '00000000', the last '00059999', their hash 7982": alike for equal
// copies, however their files are laid out. Opens the source once more and reads a few records.
// Empty for what cannot be read twice, as a camera. Throws IoError.
std::string ContentOf(const RecordSource& records);

}  // namespace caffe::data
