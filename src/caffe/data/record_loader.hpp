// From a record's bytes to an image: parse, decode, augment. One per thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/transformers/object_box.hpp"

namespace caffe::data {

// Keeps its buffers from record to record. Errors are IoError where the record is broken and
// InvalidArgument where it does not fit the net; the caller adds the place.
class RecordLoader {
 public:
  struct Sample {
    ImageView image;
    float label = 0;
    std::vector<ObjectBox> boxes;  // of annotated records
    ImageView label_image;  // of records with one: floats, one channel, as large as the image
  };

  virtual ~RecordLoader() = default;
  // Parses and decodes; the result is valid until the next call. `draw` keys random choices.
  virtual Sample Load(std::string_view value, uint64_t draw) = 0;
  // Extents of the image that Load() would give, reading as little as possible.
  virtual ImageExtents ReadExtents(std::string_view value, uint64_t draw) = 0;
  // Whether there is something to decode.
  virtual bool IsEncoded(std::string_view value) = 0;
};

// Records that are Datum messages.
class DatumLoader final : public RecordLoader {
 public:
  explicit DatumLoader(ColorMode mode) : decoder_(mode) {}

  Sample Load(std::string_view value, uint64_t) override {
    const DatumView datum = ParseDatum(value, &floats_);
    return {.image = datum.encoded ? decoder_.Decode(datum.data) : PixelsOf(datum),
            .label = static_cast<float>(datum.label)};
  }

  ImageExtents ReadExtents(std::string_view value, uint64_t) override {
    const DatumView datum = ParseDatum(value, &floats_);
    return datum.encoded ? decoder_.ReadExtents(datum.data) : datum.extents;
  }

  bool IsEncoded(std::string_view value) override { return ParseDatum(value, &floats_).encoded; }

 private:
  ImageDecoder decoder_;
  std::vector<float> floats_;
};

}  // namespace caffe::data
