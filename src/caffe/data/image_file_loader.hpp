// Records that are lines of an image list: reads the file, decodes and resizes it.
#pragma once

#include <string>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

class ImageFileLoader final : public RecordLoader {
 public:
  // Throws InvalidArgument for a size of which only one side is given.
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
