// Labels that are rows of boxes.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "caffe/data/transformers/object_box.hpp"
#include "caffe/shape.hpp"

namespace caffe::data {

// The number of rows is the maximum of all batches so far, rounded up to a power of two: shapes
// only grow, and seldom, because a net is planned again for each new shape.
class BoxLabels {
 public:
  // 1,1,rows,8: item, class, instance, four corners, difficult.
  Shape shape() const { return Shape{1, 1, rows_, kColumns}; }

  // Writes the boxes of all items one after the other, and fills the remaining rows with -1.
  void Write(const std::vector<std::vector<ObjectBox>>& items, std::vector<float>* labels) {
    int64_t rows = 0;
    for (const std::vector<ObjectBox>& boxes : items) rows += static_cast<int64_t>(boxes.size());
    while (rows_ < rows) rows_ *= 2;
    labels->assign(static_cast<size_t>(rows_ * kColumns), -1.0f);
    float* row = labels->data();
    for (size_t item = 0; item < items.size(); ++item) {
      for (const ObjectBox& box : items[item]) row = WriteRow(static_cast<float>(item), box, row);
    }
  }

 private:
  static constexpr int64_t kColumns = 8;

  // Returns a pointer to the next row.
  static float* WriteRow(float item, const ObjectBox& box, float* row) {
    const float values[kColumns] = {item,
                                    static_cast<float>(box.label),
                                    static_cast<float>(box.instance),
                                    box.xmin,
                                    box.ymin,
                                    box.xmax,
                                    box.ymax,
                                    box.difficult ? 1.0f : 0.0f};
    return std::copy(std::begin(values), std::end(values), row);
  }

  int64_t rows_ = 8;
};

}  // namespace caffe::data
