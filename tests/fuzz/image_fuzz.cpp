// Reads the extents of image files, and their pixels in each mode.
#include "caffe/data/parsers/image_codec.hpp"
#include "tests/fuzz/fuzz_input.hpp"

FUZZ_TARGET(image) {
  constexpr int64_t kMostValues = int64_t{1} << 22;
  const std::string_view file = caffe::fuzz::View(data, size);
  using caffe::data::ColorMode;
  for (const ColorMode mode : {ColorMode::kAsStored, ColorMode::kColor, ColorMode::kGray}) {
    caffe::fuzz::Try([&] {
      caffe::data::ImageDecoder decoder(mode);
      if (caffe::data::IsJpeg(file) && decoder.ReadExtents(file).count() > kMostValues) return;
      decoder.Decode(file);
    });
  }
  return 0;
}
