// Key-value databases of records: LMDB and LevelDB.
#pragma once

#include <memory>
#include <string>

#include "../common.hpp"
#include "caffe/proto/caffe.pb.h"

CAFFE_BVLC_BEGIN
namespace db {

// WRITE opens an existing database, NEW creates one. A new database is filled under a temporary
// name and renamed to its path, complete, on Close() or when the DB is destroyed. WRITE throws
// caffe::Error, because an existing database cannot be changed.
enum Mode { READ, WRITE, NEW };

class Cursor {
 public:
  Cursor() {}
  virtual ~Cursor() {}
  virtual void SeekToFirst() = 0;
  virtual void Next() = 0;
  virtual string key() = 0;
  virtual string value() = 0;
  virtual bool valid() = 0;

  DISABLE_COPY_AND_ASSIGN(Cursor);
};

class Transaction {
 public:
  Transaction() {}
  virtual ~Transaction() {}
  virtual void Put(const string& key, const string& value) = 0;
  virtual void Commit() = 0;

  DISABLE_COPY_AND_ASSIGN(Transaction);
};

class DB {
 public:
  DB() {}
  virtual ~DB() {}
  virtual void Open(const string& source, Mode mode) = 0;
  virtual void Close() = 0;
  // The caller owns the result, which must be destroyed before the DB.
  virtual Cursor* NewCursor() = 0;
  virtual Transaction* NewTransaction() = 0;

  DISABLE_COPY_AND_ASSIGN(DB);
};

// The caller owns the result. Both throw caffe::Error for an unknown kind.
DB* GetDB(DataParameter::DB backend);
// "lmdb" or "leveldb".
DB* GetDB(const string& backend);

}  // namespace db
CAFFE_BVLC_END
