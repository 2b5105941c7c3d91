#include "caffe/compat/caffe/util/db.hpp"

#include <utility>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/readers/record_writer.hpp"
#include "caffe/error.hpp"

namespace caffe::bvlc::db {
namespace {

class RecordCursor final : public Cursor {
 public:
  explicit RecordCursor(std::unique_ptr<data::RecordReader> reader) : reader_(std::move(reader)) {
    SeekToFirst();
  }

  void SeekToFirst() override { valid_ = reader_->First(&record_); }
  void Next() override { valid_ = reader_->Next(&record_); }
  string key() override { return string(Current().key); }
  string value() override { return string(Current().value); }
  bool valid() override { return valid_; }

 private:
  const data::Record& Current() const {
    Require(valid_, "the cursor is past the last record; ask valid() first");
    return record_;
  }

  std::unique_ptr<data::RecordReader> reader_;
  data::Record record_;
  bool valid_ = false;
};

// If several transactions are open, records are written in the order of the commits.
class RecordTransaction final : public Transaction {
 public:
  explicit RecordTransaction(data::RecordWriter& writer) : writer_(writer) {}

  void Put(const string& key, const string& value) override { records_.emplace_back(key, value); }
  void Commit() override {
    for (const auto& [key, value] : records_) writer_.Put(key, value);
    records_.clear();
  }

 private:
  data::RecordWriter& writer_;
  vector<pair<string, string>> records_;
};

class Records final : public DB {
 public:
  explicit Records(DataParameter::DB backend) : backend_(backend) {}
  ~Records() override {
    try {
      Close();
    } catch (const Error& error) {
      LOG(ERROR) << error.what();
    }
  }

  void Open(const string& source, Mode mode) override {
    Close();
    source_ = source;
    if (mode == WRITE) {
      throw Unsupported(source +
                        ": a database that is there is not written to; make another one "
                        "(db::NEW) with its records and the new ones");
    }
    if (mode == NEW) {
      writer_ = data::CreateRecordWriter(backend_, source);
    } else {
      data::OpenRecordReader(backend_, source);  // throws if there is none
    }
  }

  void Close() override {
    if (const auto writer = std::exchange(writer_, nullptr)) writer->Finish();
  }

  Cursor* NewCursor() override {
    Require(writer_ == nullptr, source_, ": a new database has no cursor before it is closed");
    return new RecordCursor(data::OpenRecordReader(backend_, source_));
  }

  Transaction* NewTransaction() override {
    Require(writer_ != nullptr, source_, ": was opened to be read; db::NEW makes a new database");
    return new RecordTransaction(*writer_);
  }

 private:
  DataParameter::DB backend_;
  string source_;
  std::unique_ptr<data::RecordWriter> writer_;
};

}  // namespace

DB* GetDB(DataParameter::DB backend) {
  return new Records(backend);
}
DB* GetDB(const string& backend) {
  return new Records(data::ParseBackend(backend));
}

}  // namespace caffe::bvlc::db
