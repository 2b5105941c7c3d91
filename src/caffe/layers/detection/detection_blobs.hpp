// Reads the bottoms of detection layers and writes detections.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/ops/boxes.hpp"
#include "caffe/ops/detections.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/shape.hpp"

namespace caffe {

// An operand's elements, row-major.
inline std::vector<double> ValuesOf(const TensorView& view) {
  std::vector<double> values(view.count());
  CopyTensor(view, {{view.shape, DType::kDouble, Layout::kPlain}, values.data()});
  return values;
}

// Copies `count` elements from element `first` of a plain operand on.
inline void ReadElements(const TensorView& view, int64_t first, int64_t count, double* to) {
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    const T* from = view.as<const T>() + first;
    for (int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
  });
}

// The reverse: to element `first` of a plain operand and those after it.
inline void WriteElements(const double* from, int64_t count, const TensorView& view,
                          int64_t first) {
  VisitFloat(view.dtype, [&]<typename T>(TypeTag<T>) {
    T* to = view.as<T>() + first;
    for (int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
  });
}

// Sort key for mining: NaN counts as the hardest, because dropping such a loss would hide it.
inline double Hardness(double loss) {
  return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
}

// PriorBox's top: boxes and the variances that scale their codes.
struct PriorBoxes {
  std::vector<ops::Box> boxes;
  std::vector<ops::BoxCodes> variances;

  explicit PriorBoxes(const std::vector<double>& values) {
    const size_t count = values.size() / 8;
    for (size_t i = 0; i < count; ++i) {
      const double *box = &values[i * 4], *variance = &values[(count + i) * 4];
      boxes.push_back({box[0], box[1], box[2], box[3]});
      variances.push_back({variance[0], variance[1], variance[2], variance[3]});
    }
  }
};

// An object of the ground truth; its row is (item, label, instance, xmin, ymin, xmax, ymax,
// difficult).
struct GroundTruth {
  int label = 0;
  ops::Box box;
  bool is_difficult = false;
};

// Groups by item; rows with item -1 stand for an image without objects, and rows whose item is no
// number of one are left out.
inline std::map<int, std::vector<GroundTruth>> GroundTruths(const std::vector<double>& values) {
  std::map<int, std::vector<GroundTruth>> items;
  for (size_t i = 0; i + 8 <= values.size(); i += 8) {
    const double* row = &values[i];
    if (!(row[0] >= 0 && row[0] <= std::numeric_limits<int>::max())) continue;
    items[static_cast<int>(row[0])].push_back(
        {static_cast<int>(row[1]), {row[3], row[4], row[5], row[6]}, row[7] != 0});
  }
  return items;
}

inline ops::BoxCodes CodesAt(const std::vector<double>& values, size_t index) {
  const double* codes = &values[index * 4];
  return {codes[0], codes[1], codes[2], codes[3]};
}

// True if a box can be written to a top of floats.
inline bool IsFinite(const ops::Box& box) {
  const std::array<double, 4> edges = {box.xmin, box.ymin, box.xmax, box.ymax};
  return std::ranges::all_of(edges, [](double edge) {
    return std::abs(edge) <= static_cast<double>(std::numeric_limits<float>::max());
  });
}

using ops::Detection;
using ops::kDetectionColumns;

// Writes the rows of each item to output 0 or, if no item has any, one row per item with label -1.
// Returns the shape if it differs from the planned one, as host calls do.
inline std::vector<Shape> StoreDetections(const std::vector<std::vector<Detection>>& items,
                                          const KernelContext& ctx) {
  std::vector<double> rows = ops::DetectionRows(items);
  const Shape shape{1, 1, static_cast<int64_t>(rows.size()) / kDetectionColumns, kDetectionColumns};
  if (!(ctx.output(0).shape == shape)) return {shape};
  CopyTensor({{shape, DType::kDouble, Layout::kPlain}, rows.data()}, ctx.output(0));
  return {};
}

}  // namespace caffe
