// LMDB databases of records: reading without copying, and writing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace caffe::data {

struct RecordView {
  std::string_view key, value;
};

// A read-only database with one cursor. Records stay valid as long as the reader lives: they point
// into the memory map. One thread moves the cursor; other threads may read the records it gave.
class LmdbReader {
 public:
  // Throws IoError when the folder is missing, is no LMDB, is damaged or holds no record.
  explicit LmdbReader(const std::string& path);
  ~LmdbReader();
  LmdbReader(const LmdbReader&) = delete;
  LmdbReader& operator=(const LmdbReader&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // The record under the cursor, and the cursor moved on; after the last record comes the first.
  RecordView Next();
  void Rewind();
  // The record with a key from Keys().
  RecordView Find(std::string_view key) const;
  // All keys in order; views into the map.
  std::vector<std::string_view> Keys() const;

 private:
  struct Handles;
  std::string path_;
  uint64_t size_ = 0;
  std::unique_ptr<Handles> handles_;
};

// Creates a database and appends records; the map grows as needed and every 1,000 records are
// committed together.
class LmdbWriter {
 public:
  // Throws IoError when the path exists or cannot be made.
  explicit LmdbWriter(const std::string& path);
  ~LmdbWriter();
  LmdbWriter(const LmdbWriter&) = delete;
  LmdbWriter& operator=(const LmdbWriter&) = delete;

  void Put(std::string_view key, std::string_view value);
  // Makes everything durable. Throws IoError.
  void Close();

 private:
  struct Handles;
  void Commit();

  std::string path_;
  std::unique_ptr<Handles> handles_;
  // Records of the open transaction, to repeat them when the map has to grow.
  std::vector<std::pair<std::string, std::string>> pending_;
};

}  // namespace caffe::data
