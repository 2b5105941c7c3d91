#include "caffe/device/jpeg_decoder.hpp"

#include <map>

#include "caffe/error.hpp"

namespace caffe {
namespace {

std::map<DeviceKind, JpegDecoderMaker>& JpegDecoderMakers() {
  static std::map<DeviceKind, JpegDecoderMaker> makers;
  return makers;
}

}  // namespace

JpegDecoderRegistrar::JpegDecoderRegistrar(DeviceKind kind, JpegDecoderMaker maker) {
  JpegDecoderMakers()[kind] = maker;
}

std::unique_ptr<DeviceJpegDecoder> MakeJpegDecoder(const std::shared_ptr<Device>& device) {
  const auto found = JpegDecoderMakers().find(device->kind());
  if (found == JpegDecoderMakers().end())
    throw Unsupported(StrCat("a device of kind ", Name(device->kind()), " decodes no JPEG files"));
  return found->second(device);
}

}  // namespace caffe
