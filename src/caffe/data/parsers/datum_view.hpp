// DatumView: one record's pixels and label, wherever they are.
#pragma once

#include <cstdint>

namespace caffe::data {

// Exactly one of pixels and floats is set.
struct DatumView {
  int channels = 0, height = 0, width = 0;
  int label = 0;
  const uint8_t* pixels = nullptr;
  const char* floats = nullptr;  // little-endian float32, perhaps unaligned
  // Pixels are interleaved (H,W,C), as decoders give them; otherwise planes (C,H,W).
  bool is_interleaved = false;
};

}  // namespace caffe::data
