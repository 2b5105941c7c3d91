// Reads the ranges of blobs that a net of precision INT8 or FAKE_INT8 needs.
#pragma once

#include <memory>

#include "caffe/net.hpp"
#include "caffe/tensor/blob_ranges.hpp"

namespace caffe {

// Null if no layer is computed in 8 bits or rounded to them. `param` is filtered. Throws
// InvalidArgument for precision INT8 in phase TRAIN, for a net without a calibration file and for
// another net's file; IoError for a file that cannot be read.
std::shared_ptr<const BlobRanges> NeededRanges(const NetParameter& param,
                                               const NetOptions& options);

}  // namespace caffe
