#include "caffe/data/readers/lmdb.hpp"

#include <lmdb.h>
#include <unistd.h>

#include <filesystem>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

constexpr size_t kRecordsPerCommit = 1000;
constexpr size_t kFirstMapBytes = size_t{1} << 30;  // sparse: costs nothing until it is filled

void Check(int status, const std::string& path, const char* doing) {
  if (status == MDB_SUCCESS) return;
  std::string advice;
  if (status == MDB_INVALID || status == MDB_CORRUPTED || status == MDB_PAGE_NOTFOUND ||
      status == MDB_VERSION_MISMATCH) {
    advice = "; the file is damaged, cut short or no LMDB: make it anew with convert_imageset";
  }
  throw IoError(StrCat(path, ": ", doing, ": ", mdb_strerror(status), advice));
}

std::string_view View(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

MDB_val Value(std::string_view view) { return {view.size(), const_cast<char*>(view.data())}; }

struct Environment {
  MDB_env* env = nullptr;
  ~Environment() {
    if (env != nullptr) mdb_env_close(env);
  }
};

}  // namespace

struct LmdbReader::Handles {
  Environment environment;
  MDB_txn* transaction = nullptr;
  MDB_cursor* cursor = nullptr;
  MDB_dbi database = 0;

  ~Handles() {
    if (cursor != nullptr) mdb_cursor_close(cursor);
    if (transaction != nullptr) mdb_txn_abort(transaction);
  }
};

LmdbReader::LmdbReader(const std::string& path) : path_(path), handles_(std::make_unique<Handles>()) {
  Handles& h = *handles_;
  const std::filesystem::path file = std::filesystem::path(path) / "data.mdb";
  if (!std::filesystem::exists(path)) {
    throw IoError(path + ": no such database; make it with convert_imageset or the example's script");
  }
  if (!std::filesystem::is_regular_file(file)) {
    throw IoError(path + ": not an LMDB folder (it has no data.mdb)");
  }
  Check(mdb_env_create(&h.environment.env), path, "opening");
  // Without a lock file where the folder cannot be written, as with shared read-only datasets.
  const unsigned lock = access(path.c_str(), W_OK) == 0 ? 0u : MDB_NOLOCK;
  Check(mdb_env_open(h.environment.env, path.c_str(), MDB_RDONLY | MDB_NOTLS | lock, 0664), path, "opening");
  MDB_envinfo info;
  Check(mdb_env_info(h.environment.env, &info), path, "opening");
  const size_t needed = (info.me_last_pgno + 1) * static_cast<size_t>(getpagesize());
  const size_t actual = std::filesystem::file_size(file);
  // Reading past the end of a mapped file would be a bus error, not an error code.
  if (actual < needed) {
    throw IoError(StrCat(path, ": data.mdb is cut short: it has ", actual, " bytes, its last page ends at ",
                         needed, "; copy it again or make it anew"));
  }
  Check(mdb_txn_begin(h.environment.env, nullptr, MDB_RDONLY, &h.transaction), path, "reading");
  Check(mdb_dbi_open(h.transaction, nullptr, 0, &h.database), path, "reading");
  MDB_stat stat;
  Check(mdb_stat(h.transaction, h.database, &stat), path, "reading");
  size_ = stat.ms_entries;
  if (size_ == 0) throw IoError(path + ": the database is empty; fill it before training");
  Check(mdb_cursor_open(h.transaction, h.database, &h.cursor), path, "reading");
}

LmdbReader::~LmdbReader() = default;

RecordView LmdbReader::Next() {
  MDB_val key, value;
  int status = mdb_cursor_get(handles_->cursor, &key, &value, MDB_NEXT);
  if (status == MDB_NOTFOUND) status = mdb_cursor_get(handles_->cursor, &key, &value, MDB_FIRST);
  Check(status, path_, "reading");
  return {View(key), View(value)};
}

void LmdbReader::Rewind() {
  // NEXT on a fresh cursor gives the first record.
  mdb_cursor_close(handles_->cursor);
  Check(mdb_cursor_open(handles_->transaction, handles_->database, &handles_->cursor), path_, "reading");
}

RecordView LmdbReader::Find(std::string_view key) const {
  MDB_val wanted = Value(key), value;
  Check(mdb_get(handles_->transaction, handles_->database, &wanted, &value), path_, "reading");
  return {key, View(value)};
}

std::vector<std::string_view> LmdbReader::Keys() const {
  MDB_cursor* cursor = nullptr;
  Check(mdb_cursor_open(handles_->transaction, handles_->database, &cursor), path_, "reading");
  std::vector<std::string_view> keys;
  keys.reserve(size_);
  MDB_val key, value;
  int status = MDB_SUCCESS;
  while ((status = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == MDB_SUCCESS) keys.push_back(View(key));
  mdb_cursor_close(cursor);
  if (status != MDB_NOTFOUND) Check(status, path_, "reading");
  return keys;
}

struct LmdbWriter::Handles {
  Environment environment;
  MDB_txn* transaction = nullptr;
  MDB_dbi database = 0;
  size_t map_bytes = kFirstMapBytes;

  ~Handles() {
    if (transaction != nullptr) mdb_txn_abort(transaction);
  }
};

LmdbWriter::LmdbWriter(const std::string& path) : path_(path), handles_(std::make_unique<Handles>()) {
  Handles& h = *handles_;
  std::error_code error;
  if (std::filesystem::exists(path)) throw IoError(path + ": exists already; remove it or choose another name");
  if (!std::filesystem::create_directory(path, error)) {
    throw IoError(StrCat(path, ": cannot make the folder: ", error.message()));
  }
  Check(mdb_env_create(&h.environment.env), path, "creating");
  Check(mdb_env_set_mapsize(h.environment.env, h.map_bytes), path, "creating");
  Check(mdb_env_open(h.environment.env, path.c_str(), 0, 0664), path, "creating");
}

LmdbWriter::~LmdbWriter() = default;

void LmdbWriter::Put(std::string_view key, std::string_view value) {
  pending_.emplace_back(key, value);
  if (pending_.size() >= kRecordsPerCommit) Commit();
}

void LmdbWriter::Commit() {
  Handles& h = *handles_;
  for (;;) {
    Check(mdb_txn_begin(h.environment.env, nullptr, 0, &h.transaction), path_, "writing");
    Check(mdb_dbi_open(h.transaction, nullptr, 0, &h.database), path_, "writing");
    int status = MDB_SUCCESS;
    for (const auto& [key, value] : pending_) {
      MDB_val k = Value(key), v = Value(value);
      status = mdb_put(h.transaction, h.database, &k, &v, 0);
      if (status != MDB_SUCCESS) break;
    }
    if (status == MDB_SUCCESS) {
      status = mdb_txn_commit(h.transaction);
    } else {
      mdb_txn_abort(h.transaction);
    }
    h.transaction = nullptr;
    if (status != MDB_MAP_FULL) {
      Check(status, path_, "writing");
      break;
    }
    h.map_bytes *= 2;
    Check(mdb_env_set_mapsize(h.environment.env, h.map_bytes), path_, "growing the map");
  }
  pending_.clear();
}

void LmdbWriter::Close() {
  if (!pending_.empty()) Commit();
  Check(mdb_env_sync(handles_->environment.env, 1), path_, "writing");
}

}  // namespace caffe::data
