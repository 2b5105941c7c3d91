// Parses Datum records in place.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_view.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// A Datum whose bytes remain in the record.
struct DatumView {
  ImageExtents extents;
  int label = 0;
  bool encoded = false;           // `data` is a compressed image file
  std::string_view data;          // bytes: planes, or the file
  const float* floats = nullptr;  // if the record has float_data but no data
  // float_data of a record that also has data: labels with several numbers (PoseNet).
  std::span<const float> label_numbers;
};

// Parses a serialised Datum. float_data is not an aligned array on the wire, so it is copied to
// `float_storage`, which keeps its memory between calls. Throws IoError if the bytes are not a
// Datum, or if the number of values does not match the extents.
CAFFE_EXPORT DatumView ParseDatum(std::string_view record, std::vector<float>* float_storage);

// Returns a view of a message, which must outlive the view.
CAFFE_EXPORT DatumView ViewOf(const Datum& datum);

// Returns the pixels of a datum that is not encoded.
CAFFE_EXPORT ImageView PixelsOf(const DatumView& datum);

}  // namespace caffe::data
