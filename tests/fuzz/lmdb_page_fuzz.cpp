// Pages of an LMDB: the input is a database's file. Its records are read in order, shuffled and by
// their keys, as data layers do.
#include <filesystem>
#include <fstream>
#include <numeric>

#include "caffe/data/readers/record_reader.hpp"
#include "caffe/data/record_sequence.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using caffe::data::OpenRecordReader;
using caffe::data::RecordSequence;

// Reads each byte, because a value outside the file cannot be read.
uint64_t Sum(std::string_view bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

void ReadAll(const std::string& path, bool shuffle) {
  RecordSequence sequence(
      {.source = path,
       .open = [&] { return OpenRecordReader(caffe::DataParameter::LMDB, path); },
       .shuffle = shuffle});
  for (int i = 0; i < 100; ++i) Sum(sequence.Next().record.value);
}

void SeekEach(const std::string& path) {
  const auto reader = OpenRecordReader(caffe::DataParameter::LMDB, path);
  const auto seeker = OpenRecordReader(caffe::DataParameter::LMDB, path);
  caffe::data::Record record, sought;
  int left = 100;
  for (bool found = reader->First(&record); found && left > 0; found = reader->Next(&record)) {
    if (seeker->Seek(record.key, &sought)) Sum(sought.value);
    --left;
  }
}

}  // namespace

FUZZ_TARGET(lmdb_page) {
  static const caffe::testing::TemporaryFolder folder;
  const std::string path = folder / "db";
  std::filesystem::create_directory(path);
  std::ofstream(path + "/data.mdb", std::ios::binary) << caffe::fuzz::View(data, size);
  for (const bool shuffle : {false, true}) caffe::fuzz::Try([&] { ReadAll(path, shuffle); });
  return caffe::fuzz::Try([&] { SeekEach(path); });
}
