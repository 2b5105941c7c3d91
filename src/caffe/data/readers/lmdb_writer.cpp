#include "caffe/data/readers/lmdb_writer.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "caffe/data/readers/lmdb_handles.hpp"
#include "caffe/io/atomic_folder.hpp"

namespace caffe::data {
namespace {

// Records per commit: enough to amortise its cost, few enough to keep in memory twice.
constexpr size_t kRecordsPerCommit = 1000;
constexpr size_t kBytesPerCommit = size_t{64} << 20;

class LmdbWriter final : public RecordWriter {
 public:
  LmdbWriter(const std::string& path, const LmdbWriterOptions& options)
      : path_(path), folder_(path), map_bytes_(options.map_bytes) {
    MDB_env* environment = nullptr;
    CheckLmdb(mdb_env_create(&environment), path_, "create an LMDB environment");
    environment_.reset(environment);
    CheckLmdb(mdb_env_set_mapsize(environment, map_bytes_), path_, "set the map's size");
    // Does not use LMDB's lock file: it is mapped, and accessing it on a full disk causes SIGBUS.
    CheckLmdb(mdb_env_open(environment, folder_.temporary_path().c_str(), MDB_NOLOCK, 0664), path_,
              "create an LMDB");
  }

  void Put(std::string_view key, std::string_view value) override {
    pending_.emplace_back(key, value);
    pending_bytes_ += key.size() + value.size();
    if (pending_.size() >= kRecordsPerCommit || pending_bytes_ >= kBytesPerCommit) Commit();
  }

  void Finish() override {
    Commit();
    CheckLmdb(mdb_env_sync(environment_.get(), /*force=*/1), path_, "write to disk");
    environment_.reset();
    folder_.Commit();
  }

  const std::string& folder() const override { return folder_.temporary_path(); }

 private:
  // If the map is full, the transaction is aborted with all its records, so they are kept in the
  // pending list.
  void Commit() {
    int status;
    while ((status = TryCommit()) == MDB_MAP_FULL) {
      map_bytes_ *= 2;
      CheckLmdb(mdb_env_set_mapsize(environment_.get(), map_bytes_), path_, "enlarge the map");
    }
    if (status == EIO && IsFull()) status = ENOSPC;  // LMDB reports EIO for a short write
    CheckLmdb(status, path_, "write records");
    pending_.clear();
    pending_bytes_ = 0;
  }

  bool IsFull() const {
    std::error_code error;
    const auto space = std::filesystem::space(folder_.temporary_path(), error);
    return !error && space.available <= pending_bytes_;
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

  const std::string path_;
  AtomicFolder folder_;  // must be committed after the environment is closed
  uint64_t map_bytes_;
  LmdbEnvironment environment_;
  std::vector<std::pair<std::string, std::string>> pending_;
  size_t pending_bytes_ = 0;
};

}  // namespace

std::unique_ptr<RecordWriter> CreateLmdbWriter(const std::string& path,
                                               const LmdbWriterOptions& options) {
  return std::make_unique<LmdbWriter>(path, options);
}

}  // namespace caffe::data
