// RAII owners of LMDB's handles. Included only by the LMDB reader and writer.
#pragma once

#include <lmdb.h>

#include <memory>
#include <string>

#include "caffe/error.hpp"

namespace caffe::data {

struct LmdbCloser {
  void operator()(MDB_env* environment) const { mdb_env_close(environment); }
  void operator()(MDB_txn* transaction) const { mdb_txn_abort(transaction); }
};

using LmdbEnvironment = std::unique_ptr<MDB_env, LmdbCloser>;
using LmdbTransaction = std::unique_ptr<MDB_txn, LmdbCloser>;

// Throws IoError "PATH: cannot WHAT: reason" unless `status` is success.
inline void CheckLmdb(int status, const std::string& path, const char* what) {
  if (status != MDB_SUCCESS) {
    throw IoError(StrCat(path, ": cannot ", what, ": ", mdb_strerror(status)));
  }
}

}  // namespace caffe::data
