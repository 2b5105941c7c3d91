#include "caffe/data/readers/record_reader.hpp"

#include <filesystem>

#include "caffe/data/readers/leveldb_reader.hpp"
#include "caffe/data/readers/lmdb_reader.hpp"
#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
std::unique_ptr<RecordReader> OpenRecordReader(DataParameter::DB backend, const std::string& path) {
  // The default of data_param.backend is LEVELDB, so files that mean LMDB often leave it out.
  const bool is_lmdb = std::filesystem::exists(std::filesystem::path(path) / "data.mdb");
  const bool is_leveldb = std::filesystem::exists(std::filesystem::path(path) / "CURRENT");
  if (is_lmdb) return OpenLmdbReader(path);
  if (is_leveldb) return OpenLevelDbReader(path);
  if (backend == DataParameter::LMDB) return OpenLmdbReader(path);  // says what is missing
  throw IoError(StrCat(path, ": no LMDB or LevelDB database here; give the folder that holds ",
                       "data.mdb or CURRENT"));
}

std::unique_ptr<RecordWriter> CreateRecordWriter(DataParameter::DB backend,
                                                 const std::string& path) {
  if (backend == DataParameter::LEVELDB) return CreateLevelDbWriter(path);
  return CreateLmdbWriter(path);
}

DataParameter::DB ParseBackend(std::string_view name) {
  if (name == "lmdb" || name == "LMDB") return DataParameter::LMDB;
  if (name == "leveldb" || name == "LEVELDB") return DataParameter::LEVELDB;
  throw InvalidArgument(StrCat("unknown backend '", name, "'; give lmdb or leveldb"));
}

std::string PrintableKey(std::string_view key) {
  constexpr size_t kLongest = 200;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char letter : key.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(letter);
    if (byte >= 0x20 && byte != 0x7f) {
      text += letter;
    } else {
      text += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return key.size() > kLongest ? text + "..." : text;
}

}  // namespace caffe::data
