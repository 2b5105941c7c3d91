// The frames of a video or a camera: a module that is loaded when the first one is opened.
#pragma once

#include <cstdint>
#include <memory>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/export.hpp"

namespace caffe::data {

// OpenCV's videoio, behind which lie a video player's worth of libraries.
class CAFFE_EXPORT VideoFrames {
 public:
  virtual ~VideoFrames() = default;

  // How many frames follow from the start of the video, as its header says; 0 where it does not.
  virtual uint64_t count() const = 0;
  // Goes on to the next frame; false at the end.
  virtual bool Skip() = 0;
  // The same, and decodes it: three channels, blue first.
  virtual bool Read(Image* frame) = 0;

  // `file` is a video, or null for the camera numbered `camera`. Throws IoError where it cannot be
  // opened, Unsupported where the module or its libraries are missing.
  static std::unique_ptr<VideoFrames> Open(const char* file, int camera);
};

}  // namespace caffe::data
