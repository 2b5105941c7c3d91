// JPEG files decoded by a device, many at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "caffe/device/device.hpp"
#include "caffe/export.hpp"

namespace caffe {

// A baseline file, and where its pixels are once it is decoded.
struct JpegFile {
  std::string_view bytes;
  int channels = 0, height = 0, width = 0;  // 1: grey, 3: BGR
  // In the host's memory, interleaved; of the decoder, until its next call.
  const uint8_t* pixels = nullptr;

  size_t pixel_bytes() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
};

// For one thread at a time.
class DeviceJpegDecoder {
 public:
  virtual ~DeviceJpegDecoder() = default;
  // For the log: "nvJPEG 13.3.2".
  virtual std::string name() const = 0;
  // Decodes files of one number of channels, and waits for the result. False where the decoder does
  // not take one of them, or finds it damaged: then none is decoded. Throws DeviceError.
  virtual bool Decode(std::span<JpegFile> files) = 0;
};

// Throws DeviceError where the device's library is missing, Unsupported where the kind of device
// has no decoder.
CAFFE_EXPORT std::unique_ptr<DeviceJpegDecoder> MakeJpegDecoder(
    const std::shared_ptr<Device>& device);

// What a kind of device registers that can decode.
using JpegDecoderMaker =
    std::unique_ptr<DeviceJpegDecoder> (*)(const std::shared_ptr<Device>& device);
struct JpegDecoderRegistrar {
  JpegDecoderRegistrar(DeviceKind kind, JpegDecoderMaker maker);
};

}  // namespace caffe
