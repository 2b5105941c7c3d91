// The report that `caffe data import` prints about a set of images.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caffe/io/json.hpp"
#include "tools/caffe/image_set.hpp"
#include "tools/caffe/imported_image.hpp"
#include "tools/mean_image.hpp"

namespace caffe::tools {

class ImportReport {
 public:
  ImportReport(const ImageSet& set, std::string database);

  // Adds an image of the training set.
  void Add(const ImageFile& file, const ImportedImage& image);
  void AddValidation(const ImageFile& file, const ImportedImage& image);
  // Adds a file that is not an image to the files left out.
  void AddBroken(const ImageFile& file, const std::string& reason);

  void SetValidation(const std::string& database) { validation_database_ = database; }
  // The first file passed to AddBroken().
  const LeftOut& first_broken() const { return left_out_[of_set_]; }
  // Number of images written, without those for validation.
  uint64_t images() const { return images_; }
  // Null unless all images have one shape.
  const MeanImage* mean() const { return mean_ ? &*mean_ : nullptr; }
  // Channel means over the images as stored.
  std::vector<double> ChannelMeans() const;

  std::string ToText() const;
  JsonObject ToJson() const;

 private:
  void AddFile(const ImportedImage& image);
  std::vector<std::string> Warnings() const;
  std::string SizesToText() const;
  std::string StoredToText() const;
  std::string ClassesToText() const;
  std::string MeanToText() const;

  const std::string source_;
  const std::string database_;
  std::string validation_database_;
  std::map<int, std::string> names_;
  std::map<int, uint64_t> images_of_class_;
  uint64_t images_ = 0, validation_images_ = 0;
  std::map<std::string, uint64_t> formats_;
  std::vector<data::ImageExtents> originals_;  // of training and validation images
  std::vector<double> sums_;                   // of the images' channel means
  std::optional<MeanImage> mean_ = MeanImage();
  std::vector<LeftOut> left_out_;
  size_t of_set_ = 0;  // number of files that the set itself left out; they come first
};

}  // namespace caffe::tools
