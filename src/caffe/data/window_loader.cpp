#include "caffe/data/window_loader.hpp"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe::data {
namespace {

// One side of a window: its pixels in the image, and their position in the crop.
struct Span {
  int begin = 0, count = 0;          // in the image
  int target = 0, target_count = 0;  // in the crop
  int target_mirrored = 0;           // position if the crop is mirrored
};

// Maps pixels `first` to `last` of a side of `size` pixels to `crop` pixels.
Span PlaceSide(int first, int last, int size, int crop) {
  const int before = std::max(0, -first), after = std::max(0, last - size + 1);
  const float scale = static_cast<float>(crop) / static_cast<float>(last - first + 1);
  const auto scaled = [&](int pixels) {
    return static_cast<int>(std::round(static_cast<float>(pixels) * scale));
  };
  Span span;
  span.begin = first + before;
  span.count = last - after - span.begin + 1;
  span.target = scaled(before);
  span.target_mirrored = scaled(after);
  span.target_count = scaled(span.count);
  const int room = crop - std::max(span.target, span.target_mirrored);
  span.target_count = std::clamp(span.target_count, 0, std::max(room, 0));
  return span;
}

// The window's box with its surrounding context, in pixels; it may extend beyond the image.
struct Box {
  int x1, y1, x2, y2;  // both corners are inclusive
};

Box WithContextAround(const Window& window, const WindowDataParameter& options, int crop) {
  float half_width = static_cast<float>(window.x2 - window.x1 + 1) / 2,
        half_height = static_cast<float>(window.y2 - window.y1 + 1) / 2;
  Require(half_width > 0 && half_height > 0, "the window (", window.x1, ", ", window.y1, ", ",
          window.x2, ", ", window.y2, ") is empty");
  const bool is_square = options.crop_mode() == "square";
  if (options.context_pad() == 0 && !is_square) {
    return {window.x1, window.y1, window.x2, window.y2};
  }
  const float center_x = static_cast<float>(window.x1) + half_width,
              center_y = static_cast<float>(window.y1) + half_height;
  if (is_square) half_width = half_height = std::max(half_width, half_height);
  const float context = static_cast<float>(crop) /
                        static_cast<float>(crop - 2 * static_cast<int>(options.context_pad()));
  const auto rounded = [](float x) { return static_cast<int>(std::round(x)); };
  return {rounded(center_x - half_width * context), rounded(center_y - half_height * context),
          rounded(center_x + half_width * context), rounded(center_y + half_height * context)};
}

// Returns the part of the image, scaled to its size in the crop.
cv::Mat Warp(const ImageView& image, const Span& columns, const Span& rows, bool mirror) {
  const cv::Mat whole(image.extents.height, image.extents.width, CV_8UC(image.extents.channels),
                      const_cast<uint8_t*>(image.bytes));
  cv::Mat warped;
  cv::resize(whole(cv::Rect(columns.begin, rows.begin, columns.count, rows.count)), warped,
             cv::Size(columns.target_count, rows.target_count), 0, 0, cv::INTER_LINEAR);
  if (mirror) cv::flip(warped, warped, 1);
  return warped;
}

// mean_value of a channel; 0 if there is none.
float MeanValue(const TransformationParameter& transform, int channel) {
  const int values = transform.mean_value_size();
  return values == 0 ? 0 : transform.mean_value(values == 1 ? 0 : std::min(channel, values - 1));
}

}  // namespace

WindowSet::WindowSet(const WindowDataParameter& options, const TransformationParameter& transform,
                     uint64_t ranks, uint64_t seed, const std::string& stream)
    : options_(options),
      transform_(transform),
      ranks_(ranks),
      random_(transform.random_seed() >= 0 ? static_cast<uint64_t>(transform.random_seed()) : seed,
              StreamOf(stream)),
      file_(ReadWindowFile(options.source())) {
  CheckOptions();
  DivideWindows();
  if (transform.has_mean_file()) ReadMean();
  if (!options.cache_images()) return;
  for (const std::string& image : file_.images) {
    cached_.push_back(ReadFile(options.root_folder() + image));
  }
}

void WindowSet::CheckOptions() const {
  const int crop = static_cast<int>(transform_.crop_size());
  Require(crop > 0, "transform_param { crop_size } is missing; windows are scaled to that size");
  Require(2 * static_cast<int>(options_.context_pad()) < crop, "context_pad is ",
          options_.context_pad(), " on each side, but crop_size only ", crop);
  Require(options_.crop_mode() == "warp" || options_.crop_mode() == "square", "crop_mode is '",
          options_.crop_mode(), "'; use warp or square");
  Require(options_.fg_fraction() >= 0 && options_.fg_fraction() <= 1, "fg_fraction is ",
          options_.fg_fraction(), "; it must be from 0 to 1");
}

void WindowSet::DivideWindows() {
  for (Window window : file_.windows) {
    if (window.overlap >= options_.fg_threshold()) {
      Require(window.label > 0, options_.source(), ": a window of '", file_.images[window.image],
              "' has overlap ", window.overlap, " and label ", window.label,
              "; foreground needs a label from 1 on");
      foreground_.push_back(window);
    } else if (window.overlap < options_.bg_threshold()) {
      window.label = 0;
      background_.push_back(window);
    }
  }
  const int wanted =
      static_cast<int>(static_cast<float>(options_.batch_size()) * options_.fg_fraction());
  Require(wanted == 0 || !foreground_.empty(), options_.source(), ": no window has an overlap of ",
          options_.fg_threshold(), " (fg_threshold) or more");
  Require(wanted == static_cast<int>(options_.batch_size()) || !background_.empty(),
          options_.source(), ": no window has an overlap below ", options_.bg_threshold(),
          " (bg_threshold)");
}

void WindowSet::ReadMean() {
  const int crop = static_cast<int>(transform_.crop_size());
  mean_ = ReadMeanImage(transform_.mean_file());
  Require(mean_.extents.height >= crop && mean_.extents.width >= crop, "mean_file '",
          transform_.mean_file(), "' holds a mean of ", mean_.extents, ", smaller than crop_size ",
          crop);
}

WindowSet::Choice WindowSet::Choose(uint64_t number) const {
  const auto batch = static_cast<uint64_t>(options_.batch_size());
  const auto foreground = static_cast<uint64_t>(static_cast<float>(batch) * options_.fg_fraction());
  const bool is_foreground = number / ranks_ % batch >= batch - foreground;
  const std::vector<Window>& group = is_foreground ? foreground_ : background_;
  const auto draws = random_.Block(number);
  return {&group[ToRange(draws[0], static_cast<uint32_t>(group.size()))], is_foreground,
          transform_.mirror() && (draws[1] >> 31) != 0};
}

std::string_view WindowSet::ReadImage(int image, std::string* storage) const {
  if (!cached_.empty()) return cached_[image];
  *storage = ReadFile(options_.root_folder() + file_.images[image]);
  return *storage;
}

WindowLoader::WindowLoader(std::shared_ptr<const WindowSet> windows)
    : windows_(std::move(windows)),
      decoder_(windows_->transform().force_gray() ? ColorMode::kGray : ColorMode::kColor) {}

ImageExtents WindowLoader::ReadExtents(std::string_view, uint64_t) {
  const int crop = static_cast<int>(windows_->transform().crop_size());
  return {windows_->transform().force_gray() ? 1 : 3, crop, crop};
}

RecordLoader::Sample WindowLoader::Load(std::string_view value, uint64_t number) {
  const WindowSet::Choice choice = windows_->Choose(number);
  const Window& window = *choice.window;
  const ImageView image = decoder_.Decode(windows_->ReadImage(window.image, &file_));
  const ImageExtents extents = ReadExtents(value, number);
  const int crop = extents.height;
  const Box box = WithContextAround(window, windows_->options(), crop);
  const Span columns = PlaceSide(box.x1, box.x2, image.extents.width, crop);
  const Span rows = PlaceSide(box.y1, box.y2, image.extents.height, crop);
  pixels_.assign(static_cast<size_t>(extents.count()), 0.0f);
  const Sample sample = {.image = {extents, nullptr, pixels_.data()},
                         .label = static_cast<float>(window.label)};
  const bool is_outside =
      columns.count <= 0 || rows.count <= 0 || columns.target_count == 0 || rows.target_count == 0;
  if (is_outside) return sample;
  WriteCrop(Warp(image, columns, rows, choice.mirror), rows.target,
            choice.mirror ? columns.target_mirrored : columns.target);
  return sample;
}

// Subtracts the mean, scales, and splits the channels.
void WindowLoader::WriteCrop(const cv::Mat& warped, int top, int left) {
  const TransformationParameter& transform = windows_->transform();
  const int crop = static_cast<int>(transform.crop_size());
  const MeanImage& mean = windows_->mean();
  const int mean_top = (mean.extents.height - crop) / 2 + top,
            mean_left = (mean.extents.width - crop) / 2 + left;
  const int channels = warped.channels();
  for (int channel = 0; channel < channels; ++channel) {
    const float mean_value = MeanValue(transform, channel);
    for (int row = 0; row < warped.rows; ++row) {
      const uint8_t* source = warped.ptr(row) + channel;
      const float* offsets =
          mean.values.empty()
              ? nullptr
              : mean.values.data() +
                    (static_cast<size_t>(channel) * mean.extents.height + mean_top + row) *
                        mean.extents.width +
                    mean_left;
      float* out = pixels_.data() + (static_cast<size_t>(channel) * crop + top + row) * crop + left;
      for (int column = 0; column < warped.cols; ++column) {
        const float offset = offsets == nullptr ? mean_value : offsets[column];
        out[column] = (static_cast<float>(source[column * channels]) - offset) * transform.scale();
      }
    }
  }
}

}  // namespace caffe::data
