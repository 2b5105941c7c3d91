#include "caffe/data/transformers/detectnet_transformer.hpp"

#include <algorithm>

#include "caffe/data/transformers/detectnet_augmentation.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Planes of the grid; those of the classes come after them.
enum Plane { kForeground, kLeft, kTop, kRight, kBottom, kInverseWidth, kInverseHeight, kShare };
constexpr int kFirstClass = 8;
constexpr int kClassPlace = 5;  // index in a row of labels

cv::Size SizeOf(const DetectNetGroundTruthParameter& grid) {
  return {static_cast<int>(grid.image_size_x()), static_cast<int>(grid.image_size_y())};
}

}  // namespace

DetectNetTransformer::DetectNetTransformer(const DetectNetGroundTruthParameter& grid,
                                           const DetectNetAugmentationParameter& augmentation,
                                           const std::vector<float>& means)
    : grid_(grid),
      augmentation_(std::make_unique<DetectNetAugmentation>(augmentation, SizeOf(grid), means)) {
  Require(grid.stride() > 0 && grid.image_size_x() > 0 && grid.image_size_y() > 0 &&
              grid.image_size_x() % grid.stride() == 0 && grid.image_size_y() % grid.stride() == 0,
          "detectnet_groundtruth_param: an image of ", grid.image_size_x(), " x ",
          grid.image_size_y(), " is not a whole number of cells of ", grid.stride(),
          " pixels; change stride, or image_size_x and image_size_y");
  Require(grid.scale_cvg() > 0, "detectnet_groundtruth_param: scale_cvg is ", grid.scale_cvg(),
          "; it must be positive");
  for (const auto& mapping : grid.object_class()) {
    places_[static_cast<int>(mapping.src())] = static_cast<int>(mapping.dst());
  }
  if (places_.empty()) places_[1] = 0;
  for (const auto& [label, place] : places_) classes_ = std::max(classes_, place + 1);
}

DetectNetTransformer::~DetectNetTransformer() = default;

int DetectNetTransformer::grid_channels() const {
  return kFirstClass + classes_;
}

void DetectNetTransformer::Transform(const float* planes, int rows, int columns,
                                     const float* labels, int label_rows,
                                     const RandomStream* stream, uint64_t record, float* out_planes,
                                     float* out_grid) const {
  std::vector<PixelBox> boxes = BoxesOf(labels, label_rows);
  cv::Mat image(rows, columns, CV_32FC3);
  const int64_t count = static_cast<int64_t>(rows) * columns;
  auto* pixels = image.ptr<cv::Vec3f>();
  for (int64_t i = 0; i < count; ++i) {
    pixels[i] = {planes[i], planes[count + i], planes[2 * count + i]};
  }
  if (stream != nullptr) {
    Draws draws(*stream, record);
    augmentation_->Apply(draws, &image, &boxes);
  } else {
    augmentation_->ApplyWithoutDraws(&image, &boxes);
  }
  for (int channel = 0; channel < 3; ++channel) {
    cv::Mat plane(image.size(), CV_32F, out_planes + channel * image.total());
    cv::extractChannel(image, plane, channel);
  }
  const int64_t cells = static_cast<int64_t>(grid_height()) * grid_width();
  std::fill_n(out_grid, cells * grid_channels(), 0.0f);
  FillGrid(std::move(boxes), out_grid);
}

std::vector<PixelBox> DetectNetTransformer::BoxesOf(const float* labels, int label_rows) const {
  Require(labels[1] == kRowLength && labels[0] >= 0 && labels[0] < static_cast<float>(label_rows),
          "the labels start with ", labels[0], " boxes of ", labels[1], " numbers each; there are ",
          label_rows - 1, " rows of ", kRowLength, " for them");
  std::vector<PixelBox> boxes;
  for (int i = 1; i <= static_cast<int>(labels[0]); ++i) {
    const float* row = labels + static_cast<int64_t>(i) * kRowLength;
    const auto place = places_.find(static_cast<int>(row[kClassPlace]));
    if (place == places_.end()) continue;  // a class that was not requested
    boxes.push_back({place->second, {row[0], row[1], row[2], row[3]}});
  }
  return boxes;
}

void DetectNetTransformer::FillGrid(std::vector<PixelBox> boxes, float* grid) const {
  std::stable_sort(boxes.begin(), boxes.end(), [](const PixelBox& a, const PixelBox& b) {
    return a.rect.area() > b.rect.area();
  });
  const cv::Rect2f image(0, 0, static_cast<float>(width()), static_cast<float>(height()));
  for (PixelBox& box : boxes) {
    const cv::Rect2f inside = box.rect & image;
    if (inside.empty()) continue;
    if (grid_.crop_bboxes()) box.rect = inside;
    FillCells(box, grid);
  }
}

// The part of a side that counts as covered, in pixels.
float DetectNetTransformer::CoveredLength(float length) const {
  const float scaled = length * grid_.scale_cvg();
  return grid_.gridbox_type() == DetectNetGroundTruthParameter::GRIDBOX_MAX
             ? std::min(scaled, static_cast<float>(grid_.max_cvg_len()))
             : std::max(scaled, static_cast<float>(grid_.min_cvg_len()));
}

void DetectNetTransformer::FillCells(const PixelBox& box, float* grid) const {
  const auto stride = static_cast<float>(grid_.stride());
  const auto cells = [&](float start, float length, int size) {
    const float covered = CoveredLength(length), first = start + (length - covered) / 2;
    return std::pair(std::clamp(cvFloor(first / stride), 0, size),
                     std::clamp(cvCeil((first + covered) / stride), 0, size));
  };
  const cv::Rect2f& rect = box.rect;
  const auto [top, bottom] = cells(rect.y, rect.height, grid_height());
  const auto [left, right] = cells(rect.x, rect.width, grid_width());
  const auto covered = static_cast<float>((bottom - top) * (right - left));
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      const auto at = [&](int plane) -> float& {
        return grid[(static_cast<int64_t>(plane) * grid_height() + y) * grid_width() + x];
      };
      const cv::Point2f cell(static_cast<float>(x) * stride, static_cast<float>(y) * stride);
      at(kForeground) = 1;
      at(kLeft) = rect.tl().x - cell.x;
      at(kTop) = rect.tl().y - cell.y;
      at(kRight) = rect.br().x - cell.x;
      at(kBottom) = rect.br().y - cell.y;
      at(kInverseWidth) = 1 / rect.width;
      at(kInverseHeight) = 1 / rect.height;
      at(kShare) = grid_.obj_norm() ? 1 / covered : 1;
      for (int i = 0; i < classes_; ++i) at(kFirstClass + i) = i == box.label ? 1.0f : 0.0f;
    }
  }
}

}  // namespace caffe::data
