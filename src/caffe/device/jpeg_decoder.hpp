// Decodes batches of JPEG files on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe {

// A baseline JPEG file and its decoded pixels.
struct JpegFile {
  std::string_view bytes;
  int channels = 0, height = 0, width = 0;  // 1: grey, 3: BGR
  // Interleaved, in host memory that the decoder owns; valid until its next call.
  const uint8_t* pixels = nullptr;

  size_t pixel_bytes() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
};

// Not thread-safe: one thread at a time.
class DeviceJpegDecoder {
 public:
  virtual ~DeviceJpegDecoder() = default;
  // For the log: "nvJPEG 13.3.2".
  virtual std::string name() const = 0;
  // Decodes files, all with the same number of channels, and waits for the result. Returns false,
  // with no file decoded, if the decoder does not support a file or finds it damaged. Throws
  // DeviceError.
  virtual bool Decode(std::span<JpegFile> files) = 0;
};

// Throws DeviceError if the device's library is missing, Unsupported if the kind of device has no
// decoder.
CAFFE_EXPORT std::unique_ptr<DeviceJpegDecoder> MakeJpegDecoder(
    const std::shared_ptr<Device>& device);

// Registers the decoder of a kind of device.
using JpegDecoderMaker =
    std::unique_ptr<DeviceJpegDecoder> (*)(const std::shared_ptr<Device>& device);
struct JpegDecoderRegistrar {
  JpegDecoderRegistrar(DeviceKind kind, JpegDecoderMaker maker);
};

}  // namespace caffe
