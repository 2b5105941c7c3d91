#include "caffe/data/readers/lmdb_writer.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "caffe/data/readers/lmdb_handles.hpp"

namespace caffe::data {
namespace {

// Records of one commit: enough to hide its cost, few enough to hold in memory twice.
constexpr size_t kRecordsPerCommit = 1000;
constexpr size_t kBytesPerCommit = size_t{64} << 20;

class LmdbWriter final : public RecordWriter {
 public:
  LmdbWriter(const std::string& path, const LmdbWriterOptions& options)
      : path_(path), map_bytes_(options.map_bytes) {
    if (mkdir(path.c_str(), 0744) != 0) {
      if (errno == EEXIST) {
        throw InvalidArgument(
            StrCat(path, ": exists already; remove it or choose another name for the database"));
      }
      throw IoError(StrCat(path, ": cannot create the folder: ", std::strerror(errno)));
    }
    try {
      MDB_env* environment = nullptr;
      CheckLmdb(mdb_env_create(&environment), path_, "create an LMDB environment");
      environment_.reset(environment);
      CheckLmdb(mdb_env_set_mapsize(environment, map_bytes_), path_, "set the map's size");
      CheckLmdb(mdb_env_open(environment, path_.c_str(), 0, 0664), path_, "create an LMDB");
    } catch (...) {
      Remove();
      throw;
    }
  }

  ~LmdbWriter() override {
    if (!finished_) Remove();
  }

  void Put(std::string_view key, std::string_view value) override {
    pending_.emplace_back(key, value);
    pending_bytes_ += key.size() + value.size();
    if (pending_.size() >= kRecordsPerCommit || pending_bytes_ >= kBytesPerCommit) Commit();
  }

  void Finish() override {
    Commit();
    CheckLmdb(mdb_env_sync(environment_.get(), /*force=*/1), path_, "write to disk");
    finished_ = true;
    environment_.reset();
  }

 private:
  // A full map aborts the transaction with everything in it, hence the pending list.
  void Commit() {
    int status;
    while ((status = TryCommit()) == MDB_MAP_FULL) {
      map_bytes_ *= 2;
      CheckLmdb(mdb_env_set_mapsize(environment_.get(), map_bytes_), path_, "enlarge the map");
    }
    CheckLmdb(status, path_, "write records");
    pending_.clear();
    pending_bytes_ = 0;
  }

  int TryCommit() {
    MDB_txn* raw = nullptr;
    if (int status = mdb_txn_begin(environment_.get(), nullptr, 0, &raw)) return status;
    LmdbTransaction transaction(raw);
    MDB_dbi database;
    if (int status = mdb_dbi_open(raw, nullptr, 0, &database)) return status;
    for (auto& [key, value] : pending_) {
      MDB_val key_bytes{key.size(), key.data()};
      MDB_val value_bytes{value.size(), value.data()};
      if (int status = mdb_put(raw, database, &key_bytes, &value_bytes, 0)) {
        if (status != MDB_BAD_VALSIZE) return status;
        throw InvalidArgument(StrCat(path_, ": key '", key, "' has ", key.size(),
                                     " bytes, but LMDB "
                                     "takes 1 to ",
                                     mdb_env_get_maxkeysize(environment_.get()),
                                     "; shorten the name"));
      }
    }
    return mdb_txn_commit(transaction.release());
  }

  void Remove() {
    environment_.reset();
    std::error_code ignored;
    for (const char* name : {"data.mdb", "lock.mdb"}) {
      std::filesystem::remove(std::filesystem::path(path_) / name, ignored);
    }
    std::filesystem::remove(path_, ignored);
  }

  const std::string path_;
  uint64_t map_bytes_;
  LmdbEnvironment environment_;
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<RecordWriter> CreateLmdbWriter(const std::string& path,
                                               const LmdbWriterOptions& options) {
  return std::make_unique<LmdbWriter>(path, options);
}

}  // namespace caffe::data
