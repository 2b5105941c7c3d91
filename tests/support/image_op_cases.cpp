#include <array>

#include "caffe/ops/images.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddImageCases(std::vector<OpCase>* cases) {
  for (const auto& [channels, height, width] :
       std::vector<std::array<int64_t, 3>>{{3, 5, 6}, {1, 7, 9}, {5, 1, 4}}) {
    constexpr int64_t kItems = 4, kImageHeight = 7, kImageWidth = 9;
    CaseOperand images = T({kItems, channels, kImageHeight, kImageWidth}).In(0, 255);
    images.is_integer = true;
    images = images.As(DType::kUInt8);
    // Each item has another window, mirrored or not, in planes or interleaved.
    CaseOperand windows = T({kItems, ops::ImageWindow::kNumbers}).Wide();
    windows.value = [height = height, width = width](const std::vector<Elements>&,
                                                     int64_t i) -> double {
      const int64_t item = i / ops::ImageWindow::kNumbers;
      const int64_t numbers[] = {item % (kImageHeight - height + 1),
                                 item % (kImageWidth - width + 1), item % 2, item / 2};
      return static_cast<double>(numbers[i % ops::ImageWindow::kNumbers]);
    };
    const CaseOperand y = T({kItems, channels, height, width});
    const auto add = [&](const std::string& name, std::vector<CaseOperand> inputs) {
      cases->push_back({StrCat("TransformImages", name, y.shape.ToString()),
                        ops::TransformImages{1.0f / 64},
                        std::move(inputs),
                        {y}});
    };
    add("", {images, windows});
    add("Mean", {images, windows, T({channels}).Wide().In(100, 130)});
    add("MeanImage",
        {images, windows, T({channels, kImageHeight, kImageWidth}).Wide().In(100, 130)});
  }
}

}  // namespace caffe::testing
