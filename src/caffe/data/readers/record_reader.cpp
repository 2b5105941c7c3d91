#include "caffe/data/readers/record_reader.hpp"

#include "caffe/data/readers/lmdb_reader.hpp"
#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

void RequireLmdb(DataParameter::DB backend, const std::string& path) {
  if (backend == DataParameter::LMDB) return;
  throw Unsupported(StrCat(path,
                           ": this build has no LevelDB backend; set backend to LMDB, and "
                           "convert the data if it is a LevelDB"));
}

}  // namespace

std::unique_ptr<RecordReader> OpenRecordReader(DataParameter::DB backend, const std::string& path) {
  RequireLmdb(backend, path);
  return OpenLmdbReader(path);
}

std::unique_ptr<RecordWriter> CreateRecordWriter(DataParameter::DB backend,
                                                 const std::string& path) {
  RequireLmdb(backend, path);
  return CreateLmdbWriter(path);
}

DataParameter::DB ParseBackend(std::string_view name) {
  if (name == "lmdb" || name == "LMDB") return DataParameter::LMDB;
  if (name == "leveldb" || name == "LEVELDB") return DataParameter::LEVELDB;
  throw InvalidArgument(StrCat("unknown backend '", name, "'; give lmdb or leveldb"));
}

}  // namespace caffe::data
