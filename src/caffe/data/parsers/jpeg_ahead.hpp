// JPEG files of records decoded by the net's device, many together before they are asked for.
//
// CAFFE_JPEG_DECODER in the environment says who decodes: "cpu" (libjpeg-turbo, the default),
// "gpu", or "timed", whichever decodes more files in a second: the device, which threads share, or
// the processor with all of them. Files that a device does not take, and all
// where it has no decoder, are decoded by the processor.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/data/parsers/image_codec.hpp"
#include "caffe/device/jpeg_decoder.hpp"

namespace caffe::data {

// What the threads of a source share: whether the device decodes. Thread-safe.
class JpegChoice {
 public:
  // `threads` decode where the processor does; `layer` for the log.
  JpegChoice(std::shared_ptr<Device> device, bool is_timed, int threads, std::string layer)
      : device_(std::move(device)),
        threads_(threads),
        layer_(std::move(layer)),
        is_undecided_(is_timed) {}

  bool is_on() const { return is_on_; }
  // Throws as caffe::MakeJpegDecoder().
  std::unique_ptr<DeviceJpegDecoder> MakeDecoder() const { return MakeJpegDecoder(device_); }
  // The processor decodes from now on. Logs why, once.
  void Stop(const std::string& why);
  // Where nobody has yet, compares how long the device and the processor's threads take for the
  // files.
  void Decide(std::span<JpegFile> files, ColorMode mode, DeviceJpegDecoder* decoder);

 private:
  const std::shared_ptr<Device> device_;
  const int threads_;
  const std::string layer_;
  std::atomic<bool> is_on_ = true;
  std::mutex mutex_;  // of the next one, and of stopping
  bool is_undecided_;
};

// As the environment says; null: the processor decodes, or there is no device. Throws
// InvalidArgument for another value of CAFFE_JPEG_DECODER.
std::shared_ptr<JpegChoice> MakeJpegChoice(std::shared_ptr<Device> device, int threads,
                                           const std::string& layer);

// Of one thread.
class JpegAhead {
 public:
  // Bytes of pixels that are decoded together, at most. Files beyond are left to the processor.
  static constexpr size_t kMostBytes = size_t{256} << 20;

  JpegAhead(ColorMode mode, std::shared_ptr<JpegChoice> choice)
      : mode_(mode), choice_(std::move(choice)) {}

  bool is_on() const { return choice_ != nullptr && choice_->is_on(); }
  // Decodes those of the files that the device takes; drops what was decoded before.
  void Decode(std::span<const std::string_view> files);
  // The file's image, once; nothing where it was not decoded. It lasts until the next Decode().
  std::optional<ImageView> Take(std::string_view file);

  int64_t num_ready() const { return static_cast<int64_t>(ready_.size()); }

 private:
  std::vector<JpegFile> FilesForDevice(std::span<const std::string_view> files);

  const ColorMode mode_;
  const std::shared_ptr<JpegChoice> choice_;
  std::unique_ptr<ImageDecoder> headers_;
  std::unique_ptr<DeviceJpegDecoder> decoder_;
  std::map<const char*, JpegFile> ready_;  // by where the file lies
};

}  // namespace caffe::data
