#include "caffe/data/readers/leveldb_reader.hpp"

#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "caffe/data/readers/database.hpp"
#include "caffe/data/readers/open_once.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_folder.hpp"

namespace caffe::data {
namespace {

constexpr size_t kBytesPerWrite = size_t{16} << 20;

void Check(const leveldb::Status& status, const std::string& path, const char* what) {
  if (!status.ok()) throw IoError(StrCat(path, ": cannot ", what, ": ", status.ToString()));
}

leveldb::Slice SliceOf(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

// LevelDB allows a database to be opened only once, even within a process; but a net and its test
// net, or several ranks, may read the same one.
std::shared_ptr<leveldb::DB> ShareDatabase(const std::string& path) {
  static auto* const databases = new OpenOnce<std::unique_ptr<leveldb::DB>>;
  return databases->Get(path, [](const std::string& folder) {
    leveldb::Options options;
    options.max_open_files = 100;
    options.paranoid_checks = true;  // a damaged log or index is an error, instead of fewer records
    leveldb::DB* raw = nullptr;
    Check(leveldb::DB::Open(options, folder, &raw), folder, "open as LevelDB");
    return std::unique_ptr<leveldb::DB>(raw);
  });
}

class LevelDbReader final : public RecordReader {
 public:
  explicit LevelDbReader(const std::string& path) : path_(path), database_(ShareDatabase(path)) {
    leveldb::ReadOptions options;
    options.fill_cache = false;
    options.verify_checksums = true;
    iterator_.reset(database_->NewIterator(options));
    for (iterator_->SeekToFirst(); iterator_->Valid(); iterator_->Next()) ++count_;
    Check(iterator_->status(), path_, "read");
  }

  uint64_t count() const override { return count_; }
  bool First(Record* record) override {
    iterator_->SeekToFirst();
    return Give(record);
  }
  bool Last(Record* record) override {
    iterator_->SeekToLast();
    return Give(record);
  }
  bool Next(Record* record) override {
    iterator_->Next();
    return Give(record);
  }
  bool Seek(std::string_view key, Record* record) override {
    iterator_->Seek(SliceOf(key));
    return iterator_->Valid() && iterator_->key() == SliceOf(key) && Give(record);
  }

 private:
  bool Give(Record* record) {
    Check(iterator_->status(), path_, "read the next record");
    if (!iterator_->Valid()) return false;
    const auto copy = std::make_shared<std::pair<std::string, std::string>>(
        iterator_->key().ToString(), iterator_->value().ToString());
    *record = {copy->first, copy->second, copy};
    return true;
  }

  const std::string path_;
  std::shared_ptr<leveldb::DB> database_;
  std::unique_ptr<leveldb::Iterator> iterator_;  // must be closed before the database
  uint64_t count_ = 0;
};

class LevelDbWriter final : public RecordWriter {
 public:
  explicit LevelDbWriter(const std::string& path) : path_(path), folder_(path) {
    leveldb::Options options;
    options.create_if_missing = true;
    options.error_if_exists = true;
    leveldb::DB* raw = nullptr;
    Check(leveldb::DB::Open(options, folder_.temporary_path(), &raw), path, "create a LevelDB");
    database_.reset(raw);
  }

  void Put(std::string_view key, std::string_view value) override {
    batch_.Put(SliceOf(key), SliceOf(value));
    if (batch_.ApproximateSize() >= kBytesPerWrite) Commit(/*sync=*/false);
  }

  void Finish() override {
    Commit(/*sync=*/true);
    database_.reset();
    folder_.Commit();
  }

  const std::string& folder() const override { return folder_.temporary_path(); }

 private:
  void Commit(bool sync) {
    leveldb::WriteOptions options;
    options.sync = sync;
    Check(database_->Write(options, &batch_), path_, "write records");
    batch_.Clear();
  }

  const std::string path_;
  AtomicFolder folder_;  // must be committed after the database is closed
  std::unique_ptr<leveldb::DB> database_;
  leveldb::WriteBatch batch_;
};

const DatabaseRegistrar leveldb_registrar("LevelDB", {.backend = DataParameter::LEVELDB,
                                                      .marker = "CURRENT",
                                                      .open = OpenLevelDbReader,
                                                      .create = CreateLevelDbWriter});

}  // namespace

std::unique_ptr<RecordReader> OpenLevelDbReader(const std::string& path) {
  return std::make_unique<LevelDbReader>(path);
}

std::unique_ptr<RecordWriter> CreateLevelDbWriter(const std::string& path) {
  return std::make_unique<LevelDbWriter>(path);
}

}  // namespace caffe::data
