// Loads records that are lines of a list of pairs: an image and the image of its labels.
#pragma once

#include <string>
#include <vector>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

// Differences between the layers of several forks.
struct ImagePairRules {
  enum class Labels {
    kImage,   // "path path": a label for each pixel
    kNumber,  // "path label": one label for all pixels
    kNone     // "path ...": ignore_label for all pixels
  };

  const char* message = "dense_image_data_param";  // message of the options, for errors
  Labels labels = Labels::kImage;
  bool is_binary = false;  // labels are 1 for values from 128, otherwise 0
  int ignore_label = 255;  // for pixels without a label: with kNone, and padding
  // Pad images smaller than the crop at the bottom and right with the mean.
  bool pads = false;
};

// Minimum size to which smaller images are padded, and the padding color: one number per channel, a
// single number for all, or none for 0.
struct ImagePadding {
  int height = 0, width = 0;
  std::vector<float> color;
};

class ImagePairLoader final : public RecordLoader {
 public:
  // Throws InvalidArgument if only one side of the size is set.
  ImagePairLoader(const DenseImageDataParameter& options, const ImagePairRules& rules,
                  const ImagePadding& padding);

  // Resizes both images to new_height x new_width, labels by nearest neighbour. Throws
  // InvalidArgument if their sizes differ.
  Sample Load(std::string_view line, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view line, uint64_t draw) override {
    return Load(line, draw).image.extents;
  }
  bool IsEncoded(std::string_view) override { return true; }

 private:
  // PathIn() returns the path of the line's image; LabelPixels() sets `labels_`, one per pixel of
  // `image`.
  std::string_view PathIn(std::string_view line) const;
  void LabelPixels(std::string_view line, const ImageExtents& image);
  void ReadLabels(std::string_view path, const ImageExtents& image);
  void ResizeLabels(const ImageExtents& from, int height, int width);
  ImageView Padded(const ImageView& image);

  const DenseImageDataParameter options_;
  const ImagePairRules rules_;
  const ImagePadding padding_;
  ImageDecoder image_decoder_, label_decoder_;
  std::string file_;
  Image resized_;
  std::vector<float> labels_, padded_;
};

}  // namespace caffe::data
