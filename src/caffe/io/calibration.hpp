// Files of `caffe calibrate`: ranges of a net's blobs, as JSON (python/caffe/calibration).
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/tensor/blob_ranges.hpp"

namespace caffe {

// Throws IoError if the file cannot be read, InvalidArgument if it is not a calibration file.
CAFFE_EXPORT BlobRanges ReadCalibration(const std::string& file);

}  // namespace caffe
