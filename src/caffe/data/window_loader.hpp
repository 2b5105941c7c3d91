// Batches of boxes cropped from images for WindowData, foreground and background in a fixed
// proportion.
#pragma once

#include <memory>
#include <opencv2/core.hpp>
#include <string>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/data/readers/window_file.hpp"
#include "caffe/data/record_loader.hpp"
#include "caffe/data/transformers/mean_image.hpp"

namespace caffe::data {

// Data shared by all threads: the windows in their two groups, the mean, and the image files if
// they are cached.
class WindowSet {
 public:
  // Reads the window file. Throws IoError if that fails, InvalidArgument for options out of range,
  // for empty groups that are needed, and for foreground windows of class 0.
  WindowSet(const WindowDataParameter& options, const TransformationParameter& transform,
            uint64_t ranks, uint64_t seed, const std::string& stream);

  const WindowDataParameter& options() const { return options_; }
  const TransformationParameter& transform() const { return transform_; }
  const MeanImage& mean() const { return mean_; }
  // Number of windows in the file.
  uint64_t count() const { return file_.windows.size(); }

  struct Choice {
    const Window* window;
    bool is_foreground;
    bool mirror;
  };
  // Chooses the window of record `number`, counted over all ranks; each batch starts with
  // background windows.
  Choice Choose(uint64_t number) const;
  // Returns the bytes of an image file, cached or read into `storage`.
  std::string_view ReadImage(int image, std::string* storage) const;

 private:
  void CheckOptions() const;
  void DivideWindows();
  void ReadMean();

  const WindowDataParameter options_;
  const TransformationParameter transform_;
  const uint64_t ranks_;
  const RandomStream random_;
  WindowFile file_;
  std::vector<Window> foreground_, background_;
  std::vector<std::string> cached_;
  MeanImage mean_;
};

// Crops windows from their images.
class WindowLoader final : public RecordLoader {
 public:
  explicit WindowLoader(std::shared_ptr<const WindowSet> windows);

  // Crops with context, warps to crop_size, mirrors, subtracts the mean and scales; the area
  // outside the image is 0.
  Sample Load(std::string_view value, uint64_t number) override;
  ImageExtents ReadExtents(std::string_view value, uint64_t number) override;
  bool IsEncoded(std::string_view) override { return true; }

 private:
  void WriteCrop(const cv::Mat& warped, int top, int left);

  const std::shared_ptr<const WindowSet> windows_;
  ImageDecoder decoder_;
  std::string file_;
  std::vector<float> pixels_;
};

}  // namespace caffe::data
