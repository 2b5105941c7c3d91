// A text file of images and boxes in them, for the training of R-CNN (Girshick et al. 2014, arXiv
// 1311.2524).
#pragma once

#include <string>
#include <vector>

#include "caffe/data/readers/record_reader.hpp"

namespace caffe::data {

// A box in pixels; both corners are inclusive.
struct Window {
  int image = 0;  // index in WindowFile::images
  int label = 0;
  float overlap = 0;  // intersection over union with an object of the class
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// Blocks of
//     # INDEX
//     PATH
//     CHANNELS
//     HEIGHT
//     WIDTH
//     COUNT
// and COUNT lines "LABEL OVERLAP X1 Y1 X2 Y2".
struct WindowFile {
  std::vector<std::string> images;
  std::vector<Window> windows;
};

// Throws IoError naming file and line.
WindowFile ReadWindowFile(const std::string& path);

// A database of `count` records without contents, for layers that need only a record's number.
std::unique_ptr<RecordReader> OpenNumbers(uint64_t count);

}  // namespace caffe::data
