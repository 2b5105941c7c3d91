#include "caffe/data/readers/lmdb_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "caffe/data/readers/database.hpp"
#include "caffe/data/readers/lmdb_handles.hpp"
#include "caffe/data/readers/lmdb_pages.hpp"
#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/data/readers/open_once.hpp"

namespace caffe::data {
namespace {

// Maximum number of readers of a database over all processes: the data layers of each worker's nets
// and test nets. LMDB's default of 126 is soon reached; a reader takes 64 bytes of the lock file.
constexpr unsigned kMostReaders = 1 << 14;

// An interrupted copy may leave an empty file, for which LMDB would only report a bad file
// descriptor.
void CheckNotEmpty(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::path(path) / "data.mdb";
  if (std::filesystem::file_size(file, error) == 0 && !error) {
    throw IoError(
        StrCat(file.string(), ": empty file, not an LMDB database; make or copy it again"));
  }
}

std::string FileOf(const std::string& path) {
  return (std::filesystem::path(path) / "data.mdb").string();
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
  int status = MDB_SUCCESS;
  LmdbEnvironment environment = open(0, &status);
  // A folder that is shared read-only cannot contain LMDB's lock file.
  if (status == EACCES || status == EROFS) environment = open(MDB_NOLOCK, &status);
  if (status == ENOENT) {
    throw IoError(StrCat(path, ": no LMDB database here (", mdb_strerror(status),
                         "); give the folder that holds data.mdb"));
  }
  CheckLmdb(status, path, "open as LMDB");
  return environment;
}

LmdbEnvironment OpenChecked(const std::string& path) {
  CheckNotEmpty(path);
  // Validates before LMDB trusts the file.
  if (std::filesystem::exists(FileOf(path))) ReadLmdbMetas(FileOf(path));
  return OpenEnvironment(path);
}

// LMDB forbids opening a database twice in a process (closing the second handle would drop the
// locks of the first), but a net and its test net, or several ranks, may read the same one.
std::shared_ptr<MDB_env> ShareEnvironment(const std::string& path) {
  static auto* const environments = new OpenOnce<LmdbEnvironment>;
  return environments->Get(path, OpenChecked);
}

LmdbTransaction BeginReading(MDB_env* environment, const std::string& path) {
  MDB_txn* transaction = nullptr;
  const int status = mdb_txn_begin(environment, nullptr, MDB_RDONLY, &transaction);
  // The lock file of another process may have fewer slots than requested.
  if (status == MDB_READERS_FULL) {
    unsigned most = 0;
    CheckLmdb(mdb_env_get_maxreaders(environment, &most), path, "start reading");
    throw IoError(StrCat(path, ": all of its ", most,
                         " places for readers are taken; train with fewer --workers, or end other "
                         "programs that read it"));
  }
  CheckLmdb(status, path, "start reading");
  return LmdbTransaction(transaction);
}

// Returns the file's meta page for the transaction. If later transactions have overwritten it,
// renews the transaction and tries again.
LmdbMeta MetaOf(MDB_txn* transaction, const std::string& file) {
  constexpr int kTries = 10;
  for (int i = 0; i < kTries; ++i) {
    const std::vector<LmdbMeta> metas = ReadLmdbMetas(file);
    const auto meta = std::ranges::find(metas, mdb_txn_id(transaction), &LmdbMeta::transaction);
    if (meta != metas.end()) return *meta;
    mdb_txn_reset(transaction);
    CheckLmdb(mdb_txn_renew(transaction), file, "start reading");
  }
  throw IoError(file + ": is damaged, or changes all the time; make it again, or end its writer");
}

// Uses one read transaction for the reader's lifetime: records stay at the same address in the
// memory map, so that their bytes need not be copied.
class LmdbReader final : public RecordReader {
 public:
  explicit LmdbReader(const std::string& path)
      : environment_(ShareEnvironment(path)),
        transaction_(BeginReading(environment_.get(), path)),
        meta_(MetaOf(transaction_.get(), FileOf(path))),
        map_(FileOf(path), meta_.used_bytes()),
        pages_(FileOf(path), &map_, meta_) {}

  uint64_t count() const override { return meta_.entries; }
  bool First(Record* record) override { return Give(pages_.First(), record); }
  bool Last(Record* record) override { return Give(pages_.Last(), record); }
  bool Next(Record* record) override { return Give(pages_.Next(), record); }
  bool Seek(std::string_view key, Record* record) override {
    return Give(pages_.Find(key), record);
  }
  uint64_t mapped_bytes() const override { return meta_.used_bytes(); }

 private:
  static bool Give(const std::optional<LmdbPages::Node>& node, Record* record) {
    if (node) *record = {node->key, node->value};
    return node.has_value();
  }

  std::shared_ptr<MDB_env> environment_;
  LmdbTransaction transaction_;  // must end before the environment
  const LmdbMeta meta_;
  const FileMap map_;  // has the size at opening; a writer may extend the file
  LmdbPages pages_;
};

const DatabaseRegistrar lmdb_registrar("LMDB", {.backend = DataParameter::LMDB,
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
