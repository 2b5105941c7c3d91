// Database backends by name. A backend is one file that registers itself; adding one changes no
// list except DataParameter.DB in caffe.proto.
#pragma once

#include <memory>
#include <string>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

struct Database {
  DataParameter::DB backend;
  // File in a database's folder that identifies the backend; null if nothing does, so that
  // data_param has to name the backend.
  const char* marker;
  std::unique_ptr<RecordReader> (*open)(const std::string& path);
  std::unique_ptr<RecordWriter> (*create)(const std::string& path);
};

// `name` is the enum's, such as "LMDB"; the tools accept upper and lower case.
struct DatabaseRegistrar {
  DatabaseRegistrar(const std::string& name, const Database& database);
};

}  // namespace caffe::data
