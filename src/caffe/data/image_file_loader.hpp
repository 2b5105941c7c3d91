// Loads records that are lines of an image list: reads, decodes and resizes the file.
#pragma once

#include <string>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

class ImageFileLoader final : public RecordLoader {
 public:
  // Throws InvalidArgument if only one side of the size is set.
  explicit ImageFileLoader(const ImageDataParameter& options);

  Sample Load(std::string_view line, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view line, uint64_t draw) override {
    return Load(line, draw).image.extents;
  }
  bool IsEncoded(std::string_view) override { return true; }

 private:
  void ReadFile(std::string_view path);

  const ImageDataParameter options_;
  ImageDecoder decoder_;
  std::string file_;
  Image resized_;
};

}  // namespace caffe::data
