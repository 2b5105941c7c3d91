#include "caffe/data/readers/video_frames.hpp"

#include "caffe/core/module.hpp"
#include "caffe/error.hpp"

namespace caffe::data {

std::unique_ptr<VideoFrames> VideoFrames::Open(const char* file, int camera) {
  static const auto open = reinterpret_cast<VideoFrames* (*)(const char*, int)>(LoadModule(
      "caffe_video_frames", "caffe_open_video",
      "videos and cameras need OpenCV's videoio library; run scripts/install_dependencies.sh video "
      "and build again"));
  std::unique_ptr<VideoFrames> frames(open(file, camera));
  if (frames != nullptr) return frames;
  if (file != nullptr) {
    throw IoError(StrCat(file,
                         ": cannot be opened as a video; is the path right, and is the format "
                         "one that this system's OpenCV can read?"));
  }
  throw IoError(StrCat("camera ", camera, " cannot be opened; see ls /dev/video*"));
}

}  // namespace caffe::data
