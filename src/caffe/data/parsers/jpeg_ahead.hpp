// Decodes the JPEG files of records on the net's device, many at a time, before they are requested.
//
// The environment variable CAFFE_JPEG_DECODER selects the decoder: "cpu" (libjpeg-turbo, the
// default), "gpu", or "timed", which takes the one with the higher throughput: the device, which
// threads share, or all threads of the processor. The processor decodes files that a device does
// not support, and all files if the device has no decoder.
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

// Shared by the threads of a source: the choice of the decoder. Thread-safe.
class JpegChoice {
 public:
  // `threads`: number of threads if the processor decodes; `layer`: name for the log.
  JpegChoice(std::shared_ptr<Device> device, bool is_timed, int threads, std::string layer)
      : device_(std::move(device)),
        threads_(threads),
        layer_(std::move(layer)),
        is_undecided_(is_timed) {}

  bool is_on() const { return is_on_; }
  // Throws like caffe::MakeJpegDecoder().
  std::unique_ptr<DeviceJpegDecoder> MakeDecoder() const { return MakeJpegDecoder(device_); }
  // Switches to the processor. Logs the reason, once.
  void Stop(const std::string& why);
  // If the decision is still open, compares the times of the device and of the processor's threads
  // for the files.
  void Decide(std::span<JpegFile> files, ColorMode mode, DeviceJpegDecoder* decoder);

 private:
  const std::shared_ptr<Device> device_;
  const int threads_;
  const std::string layer_;
  std::atomic<bool> is_on_ = true;
  std::mutex mutex_;  // guards the next member, and stopping
  bool is_undecided_;
};

// Reads the environment; null if the processor decodes or there is no device. Throws
// InvalidArgument for an invalid value of CAFFE_JPEG_DECODER.
std::shared_ptr<JpegChoice> MakeJpegChoice(std::shared_ptr<Device> device, int threads,
                                           const std::string& layer);

// Used by one thread.
class JpegAhead {
 public:
  // Maximum bytes of pixels that are decoded together. The processor decodes the remaining files.
  static constexpr size_t kMostBytes = size_t{256} << 20;

  JpegAhead(ColorMode mode, std::shared_ptr<JpegChoice> choice)
      : mode_(mode), choice_(std::move(choice)) {}

  bool is_on() const { return choice_ != nullptr && choice_->is_on(); }
  // Decodes the files that the device supports; discards earlier results.
  void Decode(std::span<const std::string_view> files);
  // Returns the file's image, once; empty if it was not decoded. Valid until the next Decode().
  std::optional<ImageView> Take(std::string_view file);

  int64_t num_ready() const { return static_cast<int64_t>(ready_.size()); }

 private:
  std::vector<JpegFile> FilesForDevice(std::span<const std::string_view> files);

  const ColorMode mode_;
  const std::shared_ptr<JpegChoice> choice_;
  std::unique_ptr<ImageDecoder> headers_;
  std::unique_ptr<DeviceJpegDecoder> decoder_;
  std::map<const char*, JpegFile> ready_;  // by address of the file
};

}  // namespace caffe::data
