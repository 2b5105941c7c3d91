// Frames of a video or a camera: a module that is loaded when the first one is opened.
#pragma once

#include <cstdint>
#include <memory>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// Implemented with OpenCV's videoio, which depends on as many libraries as a video player.
class CAFFE_EXPORT VideoFrames {
 public:
  virtual ~VideoFrames() = default;

  // Number of frames from the start of the video according to its header; 0 if unknown.
  virtual uint64_t count() const = 0;
  // Skips to the next frame; false at the end.
  virtual bool Skip() = 0;
  // The same, but decodes the frame: three channels, BGR.
  virtual bool Read(Image* frame) = 0;

  // `file` is a video, or null for camera number `camera`. Throws IoError if it cannot be opened,
  // Unsupported if the module or its libraries are missing.
  static std::unique_ptr<VideoFrames> Open(const char* file, int camera);
};

}  // namespace caffe::data
