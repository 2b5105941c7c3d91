// Datum records, parsed in place.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// A Datum whose bytes stay in the record.
struct DatumView {
  ImageExtents extents;
  int label = 0;
  bool encoded = false;           // `data` is a compressed image file
  std::string_view data;          // bytes: planes, or the file
  const float* floats = nullptr;  // of a record with float_data and without data
  // float_data of a record that has data as well: labels of several numbers (PoseNet).
  std::span<const float> label_numbers;
};

// Parses a serialised Datum. float_data has no aligned array on the wire, so that it is copied to
// `float_storage`, which keeps its memory from call to call. Throws IoError when the bytes are not
// a Datum, or hold another number of values than the extents say.
CAFFE_EXPORT DatumView ParseDatum(std::string_view record, std::vector<float>* float_storage);

// View of a message; valid as long as the message is.
CAFFE_EXPORT DatumView ViewOf(const Datum& datum);

// The pixels of a datum that is not encoded.
CAFFE_EXPORT ImageView PixelsOf(const DatumView& datum);

}  // namespace caffe::data
