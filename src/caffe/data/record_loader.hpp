// Converts a record's bytes to an image: parses, decodes, augments. One per thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "caffe/data/parsers/datum_view.hpp"
#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/data/parsers/jpeg_ahead.hpp"
#include "caffe/data/transformers/object_box.hpp"
#include "caffe/error.hpp"

namespace caffe::data {

// Reuses its buffers. Errors are IoError for a broken record and InvalidArgument for one that does
// not match the net; the caller adds the position.
class RecordLoader {
 public:
  struct Sample {
    ImageView image;
    float label = 0;
    std::span<const float> label_numbers;  // replaces the label if it has several numbers
    std::vector<ObjectBox> boxes;          // only for annotated records
    ImageView label_image;  // if the record has one: floats, one channel, same size as the image
    int shown_height = 0, shown_width = 0;  // with a label_image: size of the image without padding
  };

  virtual ~RecordLoader() = default;
  // Announces records that will be loaded, if a device may decode them together. Ignores broken
  // records; Load() reports them.
  virtual void LoadAhead(std::span<const std::string_view> /*values*/) {}
  // Parses and decodes; the result is valid until the next call. `draw` determines random choices.
  virtual Sample Load(std::string_view value, uint64_t draw) = 0;
  // Extents of the image that Load() would return; reads as little as possible.
  virtual ImageExtents ReadExtents(std::string_view value, uint64_t draw) = 0;
  // True if the record has an encoded image.
  virtual bool IsEncoded(std::string_view value) = 0;
  // Number of label numbers if the label has several; otherwise 0.
  virtual int CountLabelNumbers(std::string_view /*value*/) { return 0; }
};

// Loads Datum records.
class DatumLoader final : public RecordLoader {
 public:
  // `jpeg` decides whether a device decodes; if null, none does.
  explicit DatumLoader(ColorMode mode, std::shared_ptr<JpegChoice> jpeg = nullptr)
      : decoder_(mode), ahead_(mode, std::move(jpeg)) {}

  Sample Load(std::string_view value, uint64_t) override {
    const DatumView datum = ParseDatum(value, &floats_);
    return {.image = datum.encoded ? Decode(datum.data) : PixelsOf(datum),
            .label = static_cast<float>(datum.label),
            .label_numbers = datum.label_numbers};
  }

  void LoadAhead(std::span<const std::string_view> values) override {
    if (!ahead_.is_on()) return;
    files_.clear();
    for (const std::string_view value : values) {
      try {
        const DatumView datum = ParseDatum(value, &floats_);
        if (datum.encoded) files_.push_back(datum.data);
      } catch (const Error&) {  // unless the count is damaged
      }
    }
    ahead_.Decode(files_);
  }
  // Number of images that the last LoadAhead() has decoded and that have not been loaded yet.
  int64_t num_ready() const { return ahead_.num_ready(); }

  ImageExtents ReadExtents(std::string_view value, uint64_t) override {
    const DatumView datum = ParseDatum(value, &floats_);
    return datum.encoded ? decoder_.ReadExtents(datum.data) : datum.extents;
  }

  bool IsEncoded(std::string_view value) override { return ParseDatum(value, &floats_).encoded; }
  int CountLabelNumbers(std::string_view value) override {
    return static_cast<int>(ParseDatum(value, &floats_).label_numbers.size());
  }

 private:
  ImageView Decode(std::string_view file) {
    const std::optional<ImageView> ready = ahead_.Take(file);
    return ready ? *ready : decoder_.Decode(file);
  }

  ImageDecoder decoder_;
  JpegAhead ahead_;
  std::vector<std::string_view> files_;
  std::vector<float> floats_;
};

}  // namespace caffe::data
