#include "caffe/data/readers/video_reader.hpp"

#include <limits>

#include "caffe/data/readers/video_frames.hpp"
#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// Number of frames assumed for a camera: practically endless.
constexpr uint64_t kEndless = std::numeric_limits<uint32_t>::max();

struct Frame {
  std::string key, datum;
};

class VideoReader final : public RecordReader {
 public:
  explicit VideoReader(const VideoDataParameter& options)
      : options_(options), is_video_(IsVideo(options)) {
    Start();
    count_ = is_video_ ? Count() : kEndless;
  }

  uint64_t count() const override { return count_; }

  bool First(Record* record) override {
    if (frames_ == nullptr || next_ > 0) Start();
    return Next(record);
  }

  bool Next(Record* record) override {
    // The header's number of frames may be wrong in either direction.
    if (is_video_ && next_ == count_) return false;
    for (uint32_t i = 0; i < options_.skip_frames() && next_ > 0; ++i) {
      if (!frames_->Skip()) return false;
    }
    if (!frames_->Read(&image_)) {
      if (is_video_ && next_ > 0) return false;
      throw IoError(NameOfVideo(options_) + ": gives no frame");
    }
    auto frame = std::make_shared<Frame>();
    frame->key = StrCat("frame ", next_ * (uint64_t{options_.skip_frames()} + 1));
    frame->datum = ToDatum();
    ++next_;
    *record = {frame->key, frame->datum, frame};
    return true;
  }

  bool Seek(std::string_view key, Record* record) override {
    for (bool found = First(record); found && is_video_; found = Next(record)) {
      if (record->key == key) return true;
    }
    return false;
  }

 private:
  void Start() {
    frames_.reset();  // a camera can be opened only once
    frames_ = VideoFrames::Open(is_video_ ? options_.video_file().c_str() : nullptr,
                                options_.device_id());
    next_ = 0;
  }

  uint64_t Count() {
    uint64_t count = frames_->count();
    if (count == 0) {
      while (frames_->Skip()) ++count;
      Start();
    }
    const uint64_t skipped = options_.skip_frames();
    return (count + skipped) / (skipped + 1);
  }

  // Converts to planes, as required in a Datum.
  std::string ToDatum() {
    const auto [channels, height, width] = image_.extents;
    const size_t pixels = static_cast<size_t>(height) * static_cast<size_t>(width);
    Datum datum;
    datum.set_channels(channels);
    datum.set_height(height);
    datum.set_width(width);
    datum.set_label(0);
    std::string* planes = datum.mutable_data();
    planes->resize(pixels * static_cast<size_t>(channels));
    for (int c = 0; c < channels; ++c) {
      char* plane = planes->data() + static_cast<size_t>(c) * pixels;
      const uint8_t* from = image_.pixels.data() + c;
      for (size_t i = 0; i < pixels; ++i) plane[i] = static_cast<char>(from[i * channels]);
    }
    return datum.SerializeAsString();
  }

  const VideoDataParameter options_;
  const bool is_video_;
  std::unique_ptr<VideoFrames> frames_;
  Image image_;
  uint64_t count_ = 0;
  uint64_t next_ = 0;  // index of the next record
};

}  // namespace

std::unique_ptr<RecordReader> OpenVideo(const VideoDataParameter& options) {
  return std::make_unique<VideoReader>(options);
}

std::string NameOfVideo(const VideoDataParameter& options) {
  return IsVideo(options) ? options.video_file() : StrCat("camera ", options.device_id());
}

}  // namespace caffe::data
