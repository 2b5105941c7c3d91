// Records that are lines of a list of pairs: reads an image and the image of its labels.
#pragma once

#include <string>
#include <vector>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

class ImagePairLoader final : public RecordLoader {
 public:
  // Throws InvalidArgument for a size of which only one side is given.
  explicit ImagePairLoader(const DenseImageDataParameter& options);

  // Both images are resized to new_height x new_width, labels without mixing them. Throws
  // InvalidArgument where they differ in size.
  Sample Load(std::string_view line, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view line, uint64_t draw) override {
    return Load(line, draw).image.extents;
  }
  bool IsEncoded(std::string_view) override { return true; }

 private:
  void ReadLabels(std::string_view path, const ImageExtents& image);
  void ResizeLabels(const ImageExtents& from, int height, int width);

  const DenseImageDataParameter options_;
  ImageDecoder image_decoder_, label_decoder_;
  std::string file_;
  Image resized_;
  std::vector<float> labels_;
};

}  // namespace caffe::data
