// Several databases read as one.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"

namespace caffe::data {

// Opens data_param { source } and the databases in data_param { more }.
//
// An epoch is as short as the weights allow if each record is used: the database with the most
// records for its weight gives each of its records once, another one begins again until it has
// given its share. Without weights each record of each database is used once. Records of a database
// keep their order, and are spread evenly over the epoch.
//
// Throws IoError for databases that are missing, empty or damaged, InvalidArgument for weights that
// are not positive, that only some databases have, or that make an epoch of more
// than 2^27 records out of fewer.
std::unique_ptr<RecordReader> OpenRecordReaders(const DataParameter& reading);

// The databases of data_param, for messages: "a_lmdb and b_lmdb".
std::string SourcesOf(const DataParameter& reading);

}  // namespace caffe::data
