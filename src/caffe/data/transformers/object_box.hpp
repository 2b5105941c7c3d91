// Objects in images, for detectors.
#pragma once

namespace caffe::data {

// One object: its class and its corners relative to the image's sides, 0 to 1 inside the image.
struct ObjectBox {
  int label = 0;
  int instance = 0;
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
  bool difficult = false;

  float width() const { return xmax - xmin; }
  float height() const { return ymax - ymin; }
  // 0 for an inverted box.
  float area() const { return width() < 0 || height() < 0 ? 0 : width() * height(); }
};

}  // namespace caffe::data
