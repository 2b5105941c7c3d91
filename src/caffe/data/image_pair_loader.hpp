// Records that are lines of a list of pairs: reads an image and the image of its labels.
#pragma once

#include <string>
#include <vector>

#include "caffe/data/record_loader.hpp"

namespace caffe::data {

// What the layers of several forks do with a pair.
struct ImagePairRules {
  enum class Labels {
    kImage,   // "path path": a label for each pixel
    kNumber,  // "path label": one label for all pixels
    kNone     // "path ...": ignore_label for all pixels
  };

  const char* message = "dense_image_data_param";  // that the options are from, for errors
  Labels labels = Labels::kImage;
  bool is_binary = false;  // labels are 1 from 128 up, else 0
  int ignore_label = 255;  // of pixels without a label: those of kNone, and padding
  // Pad an image that is smaller than the crop: below it and to its right, with the mean.
  bool pads = false;
};

// The size to which smaller images are padded, and the color of the padding: a number for each
// channel, one number for all, or none for 0.
struct ImagePadding {
  int height = 0, width = 0;
  std::vector<float> color;
};

class ImagePairLoader final : public RecordLoader {
 public:
  // Throws InvalidArgument for a size of which only one side is given.
  ImagePairLoader(const DenseImageDataParameter& options, const ImagePairRules& rules,
                  const ImagePadding& padding);

  // Both images are resized to new_height x new_width, labels without mixing them. Throws
  // InvalidArgument where they differ in size.
  Sample Load(std::string_view line, uint64_t draw) override;
  ImageExtents ReadExtents(std::string_view line, uint64_t draw) override {
    return Load(line, draw).image.extents;
  }
  bool IsEncoded(std::string_view) override { return true; }

 private:
  // The path of the line's image; `labels_` gets the labels, as many as `image` has pixels.
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
