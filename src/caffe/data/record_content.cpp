#include "caffe/data/record_content.hpp"

#include <memory>
#include <string>

#include "caffe/core/hash.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

constexpr int kHashed = 16;  // number of first records in the hash

}  // namespace

std::string ContentOf(const RecordSource& records) {
  if (!records.can_resume()) return "";
  const std::unique_ptr<RecordReader> reader = records.Open();
  std::string text = StrCat(reader->count(), " records");
  WordHash hash;
  Record record;
  bool is_there = reader->First(&record);
  if (is_there) text += ", the first '" + Printable(std::string(record.key)) + "'";
  for (int i = 0; is_there && i < kHashed; ++i) {
    hash.Add(record.key);
    hash.Add(record.value);
    is_there = reader->Next(&record);
  }
  if (reader->Last(&record)) {
    text += ", the last '" + Printable(std::string(record.key)) + "'";
    hash.Add(record.key);
    hash.Add(record.value);
  }
  return text + ", their hash " + std::to_string(hash.value());
}

}  // namespace caffe::data
