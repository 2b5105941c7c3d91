#include "caffe/data/readers/lmdb_reader.hpp"

#include <cerrno>
#include <filesystem>

#include "caffe/data/readers/database.hpp"
#include "caffe/data/readers/lmdb_handles.hpp"
#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/data/readers/open_once.hpp"

namespace caffe::data {
namespace {

// Readers of one database at once, in all processes: each worker's data layers and those of their
// test nets are some. LMDB's own limit of 126 is soon reached; a place takes 64 bytes of the lock
// file.
constexpr unsigned kMostReaders = 1 << 14;

// An empty file is what an interrupted copy leaves; LMDB itself would only speak of a bad file
// descriptor.
void CheckNotEmpty(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::path(path) / "data.mdb";
  if (std::filesystem::file_size(file, error) == 0 && !error) {
    throw IoError(
        StrCat(file.string(), ": empty file, not an LMDB database; make or copy it again"));
  }
}

uint64_t UsedBytes(MDB_env* environment, const std::string& path) {
  MDB_envinfo info;
  MDB_stat statistics;
  CheckLmdb(mdb_env_info(environment, &info), path, "read the header");
  CheckLmdb(mdb_env_stat(environment, &statistics), path, "read the header");
  return (static_cast<uint64_t>(info.me_last_pgno) + 1) * statistics.ms_psize;
}

// Reading a page of the memory map that lies behind the file's end would kill the process, so a
// file shorter than its header says is refused before a record is read.
void CheckWhole(MDB_env* environment, const std::string& path) {
  const uint64_t wanted = UsedBytes(environment, path);
  const uint64_t found = std::filesystem::file_size(std::filesystem::path(path) / "data.mdb");
  if (found < wanted) {
    throw IoError(StrCat(path, "/data.mdb: truncated, ", found, " of ", wanted,
                         " bytes are there; copy or make the database again"));
  }
}

LmdbEnvironment OpenEnvironment(const std::string& path) {
  const auto open = [&](unsigned flags, int* status) {
    MDB_env* raw = nullptr;
    CheckLmdb(mdb_env_create(&raw), path, "create an LMDB environment");
    LmdbEnvironment environment(raw);
    CheckLmdb(mdb_env_set_maxreaders(raw, kMostReaders), path, "set LMDB's number of readers");
    *status = mdb_env_open(raw, path.c_str(), MDB_RDONLY | MDB_NOTLS | flags, 0664);
    return environment;
  };
  CheckNotEmpty(path);
  int status = MDB_SUCCESS;
  LmdbEnvironment environment = open(0, &status);
  // A data folder that its owner shares for reading only has no place for LMDB's lock file.
  if (status == EACCES || status == EROFS) environment = open(MDB_NOLOCK, &status);
  if (status == ENOENT) {
    throw IoError(StrCat(path, ": no LMDB database here (", mdb_strerror(status),
                         "); give the folder that holds data.mdb"));
  }
  CheckLmdb(status, path, "open as LMDB");
  CheckWhole(environment.get(), path);
  return environment;
}

// LMDB forbids a process to open one database twice (the second close would drop the first's
// locks), yet a net and its test net, or several ranks, may read the same one.
std::shared_ptr<MDB_env> ShareEnvironment(const std::string& path) {
  static auto* const environments = new OpenOnce<LmdbEnvironment>;
  return environments->Get(path, OpenEnvironment);
}

std::string_view ViewOf(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

// One read transaction for the reader's whole life: records stay where they are in the memory
// map, so that their bytes need no copy.
class LmdbReader final : public RecordReader {
 public:
  explicit LmdbReader(const std::string& path) : path_(path), environment_(ShareEnvironment(path)) {
    MDB_txn* transaction = nullptr;
    const int status = mdb_txn_begin(environment_.get(), nullptr, MDB_RDONLY, &transaction);
    // Fewer than asked for where another process has made the lock file.
    if (status == MDB_READERS_FULL) {
      unsigned most = 0;
      CheckLmdb(mdb_env_get_maxreaders(environment_.get(), &most), path, "start reading");
      throw IoError(StrCat(path, ": all of its ", most,
                           " places for readers are taken; train with fewer -workers, or end other "
                           "programs that read it"));
    }
    CheckLmdb(status, path, "start reading");
    transaction_.reset(transaction);
    MDB_dbi database;
    CheckLmdb(mdb_dbi_open(transaction, nullptr, 0, &database), path, "open the database");
    MDB_stat statistics;
    CheckLmdb(mdb_stat(transaction, database, &statistics), path, "read the number of records");
    count_ = statistics.ms_entries;
    file_bytes_ = mapped_bytes();
    MDB_cursor* cursor = nullptr;
    CheckLmdb(mdb_cursor_open(transaction, database, &cursor), path, "open a cursor");
    cursor_.reset(cursor);
  }

  uint64_t count() const override { return count_; }
  bool First(Record* record) override { return Move(MDB_FIRST, {}, record); }
  bool Next(Record* record) override { return Move(MDB_NEXT, {}, record); }
  bool Seek(std::string_view key, Record* record) override {
    return Move(MDB_SET_KEY, key, record);
  }
  uint64_t mapped_bytes() const override { return UsedBytes(environment_.get(), path_); }

 private:
  bool Move(MDB_cursor_op operation, std::string_view wanted, Record* record) {
    MDB_val key{wanted.size(), const_cast<char*>(wanted.data())};
    MDB_val value;
    const int status = mdb_cursor_get(cursor_.get(), &key, &value, operation);
    if (status == MDB_NOTFOUND) return false;
    CheckLmdb(status, path_, "read the next record");
    *record = {ViewOf(key), ViewOf(value)};
    if (value.mv_size <= file_bytes_) return true;  // LMDB believes what a damaged page says
    throw IoError(StrCat(path_, ": is damaged: a record of ", value.mv_size,
                         " bytes in a database of ", file_bytes_, "; make it anew"));
  }

  const std::string path_;
  std::shared_ptr<MDB_env> environment_;
  LmdbTransaction transaction_;
  LmdbCursor cursor_;  // closed before the transaction, that before the environment
  uint64_t count_ = 0;
  uint64_t file_bytes_ = 0;
};

const DatabaseRegistrar registrar("LMDB", {.backend = DataParameter::LMDB,
                                           .marker = "data.mdb",
                                           .open = OpenLmdbReader,
                                           .create = [](const std::string& path) {
                                             return CreateLmdbWriter(path);
                                           }});

}  // namespace

std::unique_ptr<RecordReader> OpenLmdbReader(const std::string& path) {
  return std::make_unique<LmdbReader>(path);
}

}  // namespace caffe::data
