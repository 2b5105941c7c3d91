#include "caffe/data/parsers/jpeg_ahead.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "caffe/error.hpp"

namespace caffe::data {
namespace {

// The faster of two runs, after a warm-up run that touches the memory.
template <typename Run>
double SecondsOf(const Run& run) {
  using Clock = std::chrono::steady_clock;
  run();
  double best = 0;
  for (int i = 0; i < 2; ++i) {
    const Clock::time_point start = Clock::now();
    run();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

}  // namespace

void JpegChoice::Stop(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (is_on_.exchange(false)) {
    LOG(WARNING) << "layer '" << layer_ << "': JPEG files are decoded by the processor: " << why;
  }
}

void JpegChoice::Decide(std::span<JpegFile> files, ColorMode mode, DeviceJpegDecoder* decoder) {
  const std::lock_guard lock(mutex_);
  if (!is_undecided_ || !is_on_) return;
  bool is_decoded = true;
  const double device = SecondsOf([&] { is_decoded = is_decoded && decoder->Decode(files); });
  if (!is_decoded) return;  // decide with other files
  ImageDecoder processor(mode);
  const double host = SecondsOf([&] {
    for (const JpegFile& file : files) processor.Decode(file.bytes);
  });
  is_undecided_ = false;
  is_on_ = device < host / threads_;
  const auto count = static_cast<double>(files.size());
  LOG(INFO) << "layer '" << layer_ << "': JPEG files are decoded by "
            << (is_on_ ? decoder->name() : "the processor") << ": " << decoder->name() << " takes "
            << device / count * 1e6 << " us per file, each of the processor's " << threads_
            << " threads " << host / count * 1e6 << " us";
}

std::shared_ptr<JpegChoice> MakeJpegChoice(std::shared_ptr<Device> device, int threads,
                                           const std::string& layer) {
  const char* const text = std::getenv("CAFFE_JPEG_DECODER");
  const std::string who = text == nullptr ? "cpu" : text;
  Require(who == "cpu" || who == "gpu" || who == "timed", "CAFFE_JPEG_DECODER is '", who,
          "'; it is cpu, gpu or timed");
  if (device == nullptr || who == "cpu") return nullptr;
  return std::make_shared<JpegChoice>(std::move(device), who == "timed", threads, layer);
}

void JpegAhead::Decode(std::span<const std::string_view> files) {
  ready_.clear();
  if (!is_on()) return;
  std::vector<JpegFile> batch = FilesForDevice(files);
  if (batch.empty()) return;
  try {
    if (decoder_ == nullptr) decoder_ = choice_->MakeDecoder();
    choice_->Decide(batch, mode_, decoder_.get());
    if (!is_on() || !decoder_->Decode(batch)) return;
  } catch (const Error& error) {
    decoder_.reset();
    choice_->Stop(error.what());
    return;
  }
  for (const JpegFile& file : batch) ready_[file.bytes.data()] = file;
}

std::optional<ImageView> JpegAhead::Take(std::string_view file) {
  const auto found = ready_.find(file.data());
  if (found == ready_.end() || found->second.bytes.size() != file.size()) return std::nullopt;
  const JpegFile decoded = found->second;
  ready_.erase(found);
  return ImageView{{decoded.channels, decoded.height, decoded.width},
                   decoded.pixels,
                   nullptr,
                   /*interleaved=*/true};
}

// Takes files with the same number of channels as the first one.
std::vector<JpegFile> JpegAhead::FilesForDevice(std::span<const std::string_view> files) {
  if (headers_ == nullptr) headers_ = std::make_unique<ImageDecoder>(mode_);
  std::vector<JpegFile> batch;
  size_t bytes = 0;
  for (const std::string_view bytes_of_file : files) {
    const std::optional<ImageExtents> extents = headers_->ExtentsOfPlainJpeg(bytes_of_file);
    if (!extents) continue;
    const JpegFile file{bytes_of_file, extents->channels, extents->height, extents->width};
    if (!batch.empty() && file.channels != batch[0].channels) continue;
    if (bytes + file.pixel_bytes() > kMostBytes) continue;
    bytes += file.pixel_bytes();
    batch.push_back(file);
  }
  return batch;
}

}  // namespace caffe::data
