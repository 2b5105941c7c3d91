// DatumParser: from a serialised Datum to pixels.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/datum_view.hpp"

namespace caffe::data {

// What images are decoded to.
enum class ColorMode { kAsStored, kColor, kGray };

// A record whose image cannot be decoded; unlike other errors it can be skipped.
class BrokenImage;

// Reads raw records in place and decodes compressed ones into buffers of its own, which the next
// call reuses. One per thread.
class DatumParser {
 public:
  explicit DatumParser(ColorMode color = ColorMode::kAsStored);
  ~DatumParser();
  DatumParser(const DatumParser&) = delete;
  DatumParser& operator=(const DatumParser&) = delete;

  // Throws IoError (or BrokenImage) saying what is wrong with the record; the caller adds its key.
  DatumView Parse(std::string_view record);
  // Decodes a compressed image by itself.
  DatumView Decode(std::string_view image);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caffe::data
