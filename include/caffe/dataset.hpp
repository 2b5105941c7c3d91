// Making databases: what the convert_* tools are built from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// A new database of records. Throws IoError when it exists or cannot be written, Unsupported for a
// backend that this build lacks ("lmdb" it has).
class DatasetWriter {
 public:
  DatasetWriter(const std::string& path, const std::string& backend);
  ~DatasetWriter();
  void Put(const std::string& key, const Datum& datum);
  // Makes everything durable.
  void Close();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Reads a database once, in order.
class DatasetReader {
 public:
  DatasetReader(const std::string& path, const std::string& backend);
  ~DatasetReader();
  uint64_t size() const;
  // The next record, its image decoded as stored. Throws IoError naming key and reason.
  void Next(Datum* datum);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// An idx file as MNIST's (magic 0x08 and the number of axes), plain or gzipped.
struct IdxFile {
  std::vector<int64_t> dims;
  std::vector<uint8_t> values;
};
// Throws IoError for another kind of file or one that is cut short.
IdxFile ReadIdx(const std::string& path);

struct ImageOptions {
  int resize_height = 0, resize_width = 0;  // both or neither
  bool is_color = true;
  // "": raw pixels. Otherwise the datum holds a compressed image of this type ("jpg", "png"); the
  // file's own bytes when nothing has to change.
  std::string encode_type;
};
// Throws IoError when the file is missing or is no image.
void ReadImageToDatum(const std::string& path, int label, const ImageOptions& options, Datum* datum);

// The mean of all images as compute_image_mean writes it: legacy 1 x C x H x W.
void WriteMeanImage(const std::string& path, int channels, int height, int width,
                    const std::vector<double>& sums, uint64_t count);

}  // namespace caffe
