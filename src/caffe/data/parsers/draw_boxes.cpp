#include "caffe/data/parsers/draw_boxes.hpp"

#include "caffe/data/parsers/image_formats.hpp"

namespace caffe::data {

void DrawBoxes(const std::vector<LabelledBox>& boxes, Image* image) {
  ImageFormats::Get().Draw(boxes, image);
}

}  // namespace caffe::data
