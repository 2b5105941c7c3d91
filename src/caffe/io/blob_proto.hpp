// Converts between BlobProto and plain arrays, in every form that BVLC Caffe and NVCaffe write.
#pragma once

#include <span>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe {

// Extents of the blob: num, channels, height, width if any of these old fields is set (always four
// axes then), otherwise `shape`.
CAFFE_EXPORT Shape ShapeOf(const BlobProto& blob);

// Throws InvalidArgument if the blob's shape does not have as many elements as it has values.
void CheckValueCount(const BlobProto& blob, int64_t values, bool diff = false);

// Converts the values to row-major order. If several forms are present, double_data has precedence
// over data, and data over raw_data. Throws InvalidArgument if the number of values differs from
// the shape's count. With `diff`, returns the gradient; empty if the blob has none.
std::vector<float> ReadBlobFloats(const BlobProto& blob, bool diff = false);
CAFFE_EXPORT std::vector<double> ReadBlobDoubles(const BlobProto& blob, bool diff = false);

// Replaces shape and values (or, with `diff`, shape and gradient) in the form that every Caffe
// reads: `shape` and packed `data` for float, `double_data` for double.
CAFFE_EXPORT void WriteBlobFloats(const Shape& shape, std::span<const float> values,
                                  BlobProto* blob, bool diff = false);
CAFFE_EXPORT void WriteBlobDoubles(const Shape& shape, std::span<const double> values,
                                   BlobProto* blob, bool diff = false);

}  // namespace caffe
