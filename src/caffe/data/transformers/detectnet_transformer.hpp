// DetectNetTransformer: converts an image and its boxes to DetectNet's input and target grid.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "caffe/core/philox.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

class DetectNetAugmentation;
struct PixelBox;

// Processes one item at a time; thread-safe.
//
// Labels are rows of kRowLength numbers: the first row starts with the number of boxes and the row
// length, each following row with x, y, width, height in pixels, an angle, and the class.
//
// For each cell of `stride` x `stride` pixels, the grid contains: 1 if an object covers it, the
// corners of the object's box relative to the cell's first pixel, 1 / width, 1 / height, the
// object's share of the loss, and for each class 1 if it is the object's. A cell belongs to the
// smallest box that covers it.
class DetectNetTransformer {
 public:
  static constexpr int kRowLength = 16;

  // Throws InvalidArgument for values out of range.
  DetectNetTransformer(const DetectNetGroundTruthParameter& grid,
                       const DetectNetAugmentationParameter& augmentation,
                       const std::vector<float>& means);
  ~DetectNetTransformer();

  int height() const { return static_cast<int>(grid_.image_size_y()); }
  int width() const { return static_cast<int>(grid_.image_size_x()); }
  int grid_height() const { return height() / static_cast<int>(grid_.stride()); }
  int grid_width() const { return width() / static_cast<int>(grid_.stride()); }
  int grid_channels() const;

  // Converts three planes of rows x columns, BGR, 0 to 255, and `label_rows` rows of labels to
  // three planes of height() x width() and grid_channels() planes of grid_height() x grid_width().
  // Augments the image with the random numbers of `record` in `stream`, or not if that is null.
  // Throws InvalidArgument if the labels' number of boxes exceeds their rows.
  void Transform(const float* planes, int rows, int columns, const float* labels, int label_rows,
                 const RandomStream* stream, uint64_t record, float* out_planes,
                 float* out_grid) const;

 private:
  std::vector<PixelBox> BoxesOf(const float* labels, int label_rows) const;
  void FillGrid(std::vector<PixelBox> boxes, float* grid) const;
  void FillCells(const PixelBox& box, float* grid) const;
  float CoveredLength(float length) const;

  const DetectNetGroundTruthParameter grid_;
  const std::unique_ptr<const DetectNetAugmentation> augmentation_;
  std::map<int, int> places_;  // maps the data set's classes to those of the grid
  int classes_ = 0;
};

}  // namespace caffe::data
