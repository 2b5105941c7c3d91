// Database records for commands that inspect a database: Datum or AnnotatedDatum.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/data/readers/record_reader.hpp"
#include "tools/interruption.hpp"
#include "tools/parallel.hpp"

namespace caffe::tools {

struct StoredRecord {
  data::ImageExtents extents;  // of the image itself, not of the record's fields
  std::string encoding;        // "jpg", "png", ... or "raw" or "float"
  std::vector<int> labels;     // one, or one per box
  bool has_boxes = false;
  size_t bytes = 0;
};

// Throws IoError if the record cannot be parsed or decoded. `decode` makes it decode JPEG pixels
// too.
StoredRecord ReadStoredRecord(std::string_view value, bool decode);

// Opens an LMDB or LevelDB. Throws IoError if it does not exist or has no records.
std::unique_ptr<data::RecordReader> OpenDatabase(const std::string& path);

// Calls use(record, work(record)) for each record in the order of keys. `work` runs on all cores.
// An exception of it ends the scan, so it keeps the error of one record in its result.
template <typename Work, typename Use>
void ScanRecords(data::RecordReader& reader, const Work& work, const Use& use) {
  constexpr size_t kChunk = 256;
  std::vector<data::Record> records;
  std::vector<decltype(work(records[0]))> results(kChunk);
  const auto finish = [&] {
    CheckInterrupted();
    ParallelFor(records.size(), [&](size_t i) { results[i] = work(records[i]); });
    for (size_t i = 0; i < records.size(); ++i) use(records[i], results[i]);
    records.clear();
  };
  data::Record record;
  for (bool found = reader.First(&record); found; found = reader.Next(&record)) {
    records.push_back(record);
    if (records.size() == kChunk) finish();
  }
  finish();
}

}  // namespace caffe::tools
