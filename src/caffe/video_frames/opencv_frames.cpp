// Module libcaffe_video_frames: reads videos and cameras with OpenCV.
#include <algorithm>
#include <opencv2/core.hpp>
#include <opencv2/videoio.hpp>

#include "caffe/data/readers/video_frames.hpp"
#include "caffe/error.hpp"
#include "caffe/export.hpp"

namespace caffe::data {
namespace {

class OpenCvFrames final : public VideoFrames {
 public:
  bool Open(const char* file, int camera) {
    return file != nullptr ? capture_.open(file) : capture_.open(camera);
  }

  uint64_t count() const override {
    return static_cast<uint64_t>(std::max(0.0, capture_.get(cv::CAP_PROP_FRAME_COUNT)));
  }

  bool Skip() override {
    return Try([&] { return capture_.grab(); });
  }

  bool Read(Image* frame) override {
    if (!Try([&] { return capture_.read(frame_); })) return false;
    if (frame_.type() != CV_8UC3) {
      throw IoError("the frame does not have three channels of 8 bits; convert the video");
    }
    CAFFE_ASSERT(frame_.isContinuous());
    frame->extents = {frame_.channels(), frame_.rows, frame_.cols};
    frame->pixels.assign(frame_.data, frame_.data + frame_.total() * frame_.elemSize());
    return true;
  }

 private:
  template <typename Fn>
  static bool Try(const Fn& fn) {
    try {
      return fn();
    } catch (const cv::Exception& error) {
      throw IoError(StrCat("cannot read the next frame: ", error.what()));
    }
  }

  cv::VideoCapture capture_;
  cv::Mat frame_;
};

}  // namespace
}  // namespace caffe::data

// Returns null if the video or the camera cannot be opened.
extern "C" CAFFE_EXPORT caffe::data::VideoFrames* caffe_open_video(const char* file, int camera) {
  auto frames = std::make_unique<caffe::data::OpenCvFrames>();
  try {
    return frames->Open(file, camera) ? frames.release() : nullptr;
  } catch (const cv::Exception&) {
    return nullptr;
  }
}
