// Small databases for tests.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "caffe/data/readers/lmdb_writer.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

inline std::string KeyOf(int index) {
  char key[16];
  std::snprintf(key, sizeof key, "%08d", index);
  return key;
}

inline void WriteDatabase(const std::string& path, const std::vector<std::string>& values) {
  const auto writer = CreateLmdbWriter(path, {.map_bytes = 1 << 20});
  for (size_t i = 0; i < values.size(); ++i) writer->Put(KeyOf(static_cast<int>(i)), values[i]);
  writer->Finish();
}

// Image number `index`: every pixel encodes image and position.
inline Datum NumberedDatum(int index, int channels, int height, int width) {
  Datum datum;
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.set_label(index);
  for (int i = 0; i < channels * height * width; ++i) {
    datum.mutable_data()->push_back(static_cast<char>(index * 31 + i * 7));
  }
  return datum;
}

inline std::vector<std::string> NumberedRecords(int count, int channels, int height, int width) {
  std::vector<std::string> values;
  for (int i = 0; i < count; ++i) {
    values.push_back(NumberedDatum(i, channels, height, width).SerializeAsString());
  }
  return values;
}

inline std::string EncodedRecord(const std::string& file, int label) {
  Datum datum;
  datum.set_encoded(true);
  datum.set_data(file);
  datum.set_label(label);
  return datum.SerializeAsString();
}

}  // namespace caffe::data
