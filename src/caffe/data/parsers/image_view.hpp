// Non-owning views of images from records and decoders.
#pragma once

#include <cstdint>
#include <ostream>

namespace caffe::data {

struct ImageExtents {
  int channels = 0;
  int height = 0;
  int width = 0;

  int64_t count() const { return int64_t{channels} * height * width; }
  friend bool operator==(const ImageExtents&, const ImageExtents&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const ImageExtents& extents) {
  return out << extents.channels << 'x' << extents.height << 'x' << extents.width;
}

// Either bytes or floats, in planes (C,H,W) or, for bytes, with interleaved channels (H,W,C).
struct ImageView {
  ImageExtents extents;
  const uint8_t* bytes = nullptr;
  const float* floats = nullptr;
  bool interleaved = false;
};

}  // namespace caffe::data
