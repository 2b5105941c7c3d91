// Kinds of databases, by name. A kind is one file that registers it; adding one edits no list, only
// DataParameter.DB in caffe.proto.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

struct Database {
  DataParameter::DB backend;
  const char* marker;  // the file in a database's folder by which its kind is told
  std::unique_ptr<RecordReader> (*open)(const std::string& path);
  std::unique_ptr<RecordWriter> (*create)(const std::string& path);
};

// `name` as in messages, "LMDB"; the tools take it in upper or lower case.
struct DatabaseRegistrar {
  DatabaseRegistrar(const std::string& name, const Database& database);
};

}  // namespace caffe::data
