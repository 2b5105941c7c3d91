#include "caffe/data/transformers/datum_transformer.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "caffe/data/transformers/augmentation.hpp"
#include "caffe/data/transformers/boxes_in_window.hpp"
#include "caffe/data/transformers/transform_rows.hpp"
#include "caffe/error.hpp"
#include "caffe/ops/images.hpp"

namespace caffe::data {
namespace {

// Pixels whose channels are split or joined at a time, few enough for the L1 cache.
constexpr int kBlockPixels = 512;
// Maximum number of channels of an image with interleaved channels.
constexpr int kMostInterleaved = 4;

// Calls fn(row, first column, number of columns) for blocks of the rows of an image.
template <typename Fn>
void ForEachBlock(const ImageExtents& image, Fn&& fn) {
  for (int row = 0; row < image.height; ++row) {
    for (int start = 0; start < image.width; start += kBlockPixels) {
      fn(row, start, std::min(kBlockPixels, image.width - start));
    }
  }
}

// Without crop and mirror, an image can be processed as one long row.
ImageExtents RowsOf(const ImageExtents& image, const ImageExtents& output, bool mirror) {
  if (mirror || !(output == image)) return output;
  return {image.channels, 1, image.height * image.width};
}

std::vector<float> Interleaved(const MeanImage& mean) {
  const auto [channels, height, width] = mean.extents;
  const int pixels = height * width;
  std::vector<const float*> planes;
  for (int channel = 0; channel < channels; ++channel) {
    planes.push_back(mean.values.data() + int64_t{channel} * pixels);
  }
  std::vector<float> interleaved(mean.values.size());
  InterleaveRows(planes.data(), channels, pixels, channels, interleaved.data());
  return interleaved;
}

MeanImage Mirrored(const MeanImage& mean) {
  MeanImage mirrored = mean;
  const int width = mean.extents.width;
  for (auto row = mirrored.values.begin(); row != mirrored.values.end(); row += width) {
    std::reverse(row, row + width);
  }
  return mirrored;
}

}  // namespace

DatumTransformer::OrderedMean DatumTransformer::InBothOrders(MeanImage mean) {
  std::vector<float> interleaved = Interleaved(mean);
  return {std::move(mean), std::move(interleaved)};
}

DatumTransformer::DatumTransformer(const TransformationParameter& param, bool train, uint64_t seed,
                                   const std::string& stream, const BlobProto* mean)
    : param_(param),
      train_(train),
      random_(param.random_seed() >= 0 ? static_cast<uint64_t>(param.random_seed()) : seed,
              StreamOf(stream)) {
  Require(!param.force_color() || !param.force_gray(),
          "transform_param sets both force_color and force_gray; keep one");
  Require(!param.has_mean_file() || param.mean_value_size() == 0,
          "transform_param sets both mean_file and mean_value; keep one");
  Require((param.crop_h() > 0) == (param.crop_w() > 0), "transform_param: crop_h is ",
          param.crop_h(), " and crop_w ", param.crop_w(), "; give both, or crop_size for a square");
  crop_height_ = static_cast<int>(param.crop_h() > 0 ? param.crop_h() : param.crop_size());
  crop_width_ = static_cast<int>(param.crop_w() > 0 ? param.crop_w() : param.crop_size());
  if (mean != nullptr) {
    SetMean(MeanImageOf(*mean));
  } else if (param.has_mean_file()) {
    SetMean(ReadMeanImage(param_.mean_file()));
  }
}

void DatumTransformer::SetMean(MeanImage mean) {
  is_mean_of_window_ = ResizesAtRandom(param_) || param_.has_random_resized_crop();
  if (is_mean_of_window_) {
    Require(crop_height_ > 0,
            "transform_param resizes images at random and subtracts mean_file, which then fits no "
            "image; add crop_size, or use mean_value");
    Require(crop_height_ <= mean.extents.height && crop_width_ <= mean.extents.width, "mean_file '",
            param_.mean_file(), "' holds a mean of ", mean.extents, ", smaller than the crop of ",
            crop_height_, "x", crop_width_, ", from which its centre is subtracted");
    mean = CentreOf(mean, crop_height_, crop_width_);
    LOG(WARNING) << "images are resized at random: the centre of mean_file '" << param_.mean_file()
                 << "' is subtracted from every crop, as in NVCaffe";
  }
  if (param_.mirror()) mirrored_mean_ = InBothOrders(Mirrored(mean));
  mean_ = InBothOrders(std::move(mean));
}

ColorMode DatumTransformer::color_mode() const {
  if (param_.force_color()) return ColorMode::kColor;
  return param_.force_gray() ? ColorMode::kGray : ColorMode::kAsStored;
}

ImageExtents DatumTransformer::OutputExtents(const ImageExtents& image) const {
  if (crop_height_ > image.height || crop_width_ > image.width) {
    const bool could_grow = ResizesAtRandom(param_) && !param_.allow_upscale();
    throw InvalidArgument(StrCat(
        "crop_size ", crop_height_, crop_height_ == crop_width_ ? "" : StrCat("x", crop_width_),
        " is larger than the image (", image.height, "x", image.width, "); ",
        could_grow ? "set allow_upscale: true, or " : "", "lower it or resize the images"));
  }
  const bool fits = is_mean_of_window_ ? image.channels == mean_.planes.extents.channels
                                       : image == mean_.planes.extents;
  if (!mean_.planes.values.empty() && !fits) {
    throw InvalidArgument(StrCat("mean_file '", param_.mean_file(), "' holds a mean of ",
                                 mean_.planes.extents, ", but the image before cropping is ", image,
                                 "; compute the mean of this data, or use mean_value"));
  }
  CheckMeanValues(image.channels);
  if (crop_height_ == 0) return image;
  return {image.channels, crop_height_, crop_width_};
}

void DatumTransformer::CheckMeanValues(int channels) const {
  const int means = param_.mean_value_size();
  Require(means <= 1 || means == channels, "transform_param has ", means,
          " mean_value entries, but the image has ", channels,
          " channels; give one, or one per channel");
}

Shape DatumTransformer::OutputShape(int channels, int height, int width) const {
  const ImageExtents extents = OutputExtents({channels, height, width});
  return Shape{1, extents.channels, extents.height, extents.width};
}

DatumTransformer::Window DatumTransformer::ChooseWindow(const ImageExtents& image,
                                                        uint64_t draw_index) const {
  Window window;
  const bool draws_place = train_ && crop_height_ > 0;
  std::array<uint32_t, 4> draws{};
  if (param_.mirror() || draws_place) draws = random_.Block(draw_index);
  window.mirror = param_.mirror() && (draws[0] >> 31) != 0;
  if (crop_height_ == 0) return window;
  const int spare_height = image.height - crop_height_;
  const int spare_width = image.width - crop_width_;
  if (train_) {
    window.top = static_cast<int>(ToRange(draws[1], static_cast<uint32_t>(spare_height) + 1));
    window.left = static_cast<int>(ToRange(draws[2], static_cast<uint32_t>(spare_width) + 1));
  } else {
    window.top = spare_height / 2;
    window.left = spare_width / 2;
  }
  return window;
}

void DatumTransformer::TransformLabels(const ImageExtents& image, uint64_t draw_index,
                                       const float* labels, float* out) const {
  const ImageExtents output = OutputExtents(image);
  const Window window = ChooseWindow(image, draw_index);
  for (int row = 0; row < output.height; ++row) {
    const float* source = labels + int64_t{window.top + row} * image.width + window.left;
    std::copy(source, source + output.width, out);
    if (window.mirror) std::reverse(out, out + output.width);
    out += output.width;
  }
}

float DatumTransformer::MeanOf(int channel) const {
  if (param_.mean_value_size() == 0) return 0;
  return param_.mean_value(param_.mean_value_size() == 1 ? 0 : channel);
}

int64_t DatumTransformer::MeanIndex(const ImageExtents& image, const Window& window, int row,
                                    int column) const {
  if (is_mean_of_window_) return int64_t{row} * crop_width_ + column;
  const int width = crop_width_ > 0 ? crop_width_ : image.width;
  const int left = window.mirror ? image.width - window.left - width : window.left;
  return int64_t{window.top + row} * image.width + left + column;
}

const float* DatumTransformer::MeanRow(const ImageExtents& image, const Window& window, int channel,
                                       int row, int column) const {
  if (mean_.planes.values.empty()) return nullptr;
  const int64_t plane = int64_t{mean_.planes.extents.height} * mean_.planes.extents.width;
  return MeanFor(window).planes.values.data() + channel * plane +
         MeanIndex(image, window, row, column);
}

const float* DatumTransformer::MeanPixels(const ImageExtents& image, const Window& window, int row,
                                          int column) const {
  if (mean_.planes.values.empty()) return nullptr;
  return MeanFor(window).interleaved.data() +
         MeanIndex(image, window, row, column) * image.channels;
}

void DatumTransformer::SetMean(const ImageExtents& image, const Window& window, int channel,
                               int row, int column, RowTransform* transform) const {
  transform->mean_value = MeanOf(channel);
  transform->mean_row = MeanRow(image, window, channel, row, column);
}

template <typename T>
void DatumTransformer::PlanesToPlanes(const T* pixels, const ImageExtents& image,
                                      const Window& window, float* out) const {
  const ImageExtents rows = RowsOf(image, OutputExtents(image), window.mirror);
  RowTransform transform{.scale = param_.scale(), .mirror = window.mirror};
  for (int channel = 0; channel < image.channels; ++channel) {
    for (int row = 0; row < rows.height; ++row) {
      const int64_t source_row = int64_t{channel} * image.height + window.top + row;
      SetMean(image, window, channel, row, /*column=*/0, &transform);
      TransformRow(transform, pixels + source_row * image.width + window.left, rows.width, out);
      out += rows.width;
    }
  }
}

// Transforms blocks of a few channels, and interleaves them while they are in the cache.
template <typename T>
void DatumTransformer::PlanesToInterleaved(const T* pixels, const ImageExtents& image,
                                           const Window& window, float* out) const {
  const ImageExtents rows = RowsOf(image, OutputExtents(image), window.mirror);
  const int64_t plane = int64_t{image.height} * image.width;
  std::array<std::array<float, kBlockPixels>, kMostInterleaved> blocks;
  const float* const ready[] = {blocks[0].data(), blocks[1].data(), blocks[2].data(),
                                blocks[3].data()};
  RowTransform transform{.scale = param_.scale(), .mirror = window.mirror};
  ForEachBlock(rows, [&](int row, int start, int count) {
    const T* source = pixels + int64_t{window.top + row} * image.width + window.left + start;
    const int column = window.mirror ? rows.width - start - count : start;
    float* target = out + (int64_t{row} * rows.width + column) * image.channels;
    for (int first = 0; first < image.channels; first += kMostInterleaved) {
      const int channels = std::min(kMostInterleaved, image.channels - first);
      for (int i = 0; i < channels; ++i) {
        const int channel = first + i;
        SetMean(image, window, channel, row, column, &transform);
        TransformRow(transform, source + channel * plane, count, blocks[i].data());
      }
      InterleaveRows(ready, channels, count, image.channels, target + first);
    }
  });
}

void DatumTransformer::InterleavedToPlanes(const uint8_t* pixels, const ImageExtents& image,
                                           const Window& window, float* out) const {
  const ImageExtents rows = RowsOf(image, OutputExtents(image), window.mirror);
  const int channels = image.channels;
  const int64_t plane = int64_t{rows.height} * rows.width;
  std::array<std::array<uint8_t, kBlockPixels>, kMostInterleaved> split;
  RowTransform transform{.scale = param_.scale(), .mirror = window.mirror};
  ForEachBlock(rows, [&](int row, int start, int count) {
    const uint8_t* source =
        pixels + (int64_t{window.top + row} * image.width + window.left + start) * channels;
    if (channels == 3) {
      SplitThreeChannels(source, count, split[0].data(), split[1].data(), split[2].data());
    } else {
      for (int channel = 0; channel < channels; ++channel) {
        for (int i = 0; i < count; ++i) split[channel][i] = source[i * channels + channel];
      }
    }
    const int column = window.mirror ? rows.width - start - count : start;
    for (int channel = 0; channel < channels; ++channel) {
      SetMean(image, window, channel, row, column, &transform);
      TransformRow(transform, split[channel].data(), count,
                   out + channel * plane + int64_t{row} * rows.width + column);
    }
  });
}

// Processes all channels of a block as one row of numbers; their means are a row as well.
void DatumTransformer::InterleavedToInterleaved(const uint8_t* pixels, const ImageExtents& image,
                                                const Window& window, float* out) const {
  const ImageExtents rows = RowsOf(image, OutputExtents(image), window.mirror);
  const int channels = image.channels;
  std::array<uint8_t, kBlockPixels * kMostInterleaved> reversed;
  std::array<float, kBlockPixels * kMostInterleaved> means;
  const bool has_channel_means = param_.mean_value_size() > 1;
  RowTransform transform{.mean_value = MeanOf(0), .scale = param_.scale()};
  if (has_channel_means) {
    for (int i = 0; i < kBlockPixels * channels; ++i) means[i] = MeanOf(i % channels);
    transform.mean_row = means.data();
  }
  ForEachBlock(rows, [&](int row, int start, int count) {
    const uint8_t* source =
        pixels + (int64_t{window.top + row} * image.width + window.left + start) * channels;
    const int column = window.mirror ? rows.width - start - count : start;
    if (!has_channel_means) transform.mean_row = MeanPixels(image, window, row, column);
    if (window.mirror) {
      ReversePixels(source, count, channels, reversed.data());
      source = reversed.data();
    }
    TransformRow(transform, source, count * channels,
                 out + (int64_t{row} * rows.width + column) * channels);
  });
}

void DatumTransformer::Transform(const ImageView& image, uint64_t draw_index, float* out,
                                 Layout layout) const {
  const ImageExtents& extents = image.extents;
  OutputExtents(extents);  // throws if crop or mean do not fit
  const Window window = ChooseWindow(extents, draw_index);
  // With a single channel, both orders are the same.
  const bool from_interleaved = image.interleaved && extents.channels > 1;
  const bool to_interleaved = layout == Layout::kChannelsLast && extents.channels > 1;
  if (from_interleaved) {
    CAFFE_ASSERT(extents.channels <= kMostInterleaved, extents.channels);
    return to_interleaved ? InterleavedToInterleaved(image.bytes, extents, window, out)
                          : InterleavedToPlanes(image.bytes, extents, window, out);
  }
  const auto from_planes = [&](const auto* pixels) {
    return to_interleaved ? PlanesToInterleaved(pixels, extents, window, out)
                          : PlanesToPlanes(pixels, extents, window, out);
  };
  if (image.floats != nullptr) {
    from_planes(image.floats);
  } else {
    from_planes(image.bytes);
  }
}

void DatumTransformer::Pack(const ImageView& image, uint64_t draw_index,
                            const ImageExtents& slot_extents, uint8_t* slot, float* window) const {
  Require(image.bytes != nullptr,
          "a record of floats among records of bytes; set use_gpu_transform: false");
  const ImageExtents output = OutputExtents(image.extents);
  const Window chosen = ChooseWindow(image.extents, draw_index);
  ops::ImageWindow packed{chosen.top, chosen.left, chosen.mirror, image.interleaved};
  if (image.extents == slot_extents) {
    std::memcpy(slot, image.bytes, static_cast<size_t>(image.extents.count()));
    packed.Store(window);
    return;
  }
  // Copies the rows of the window to the slot's upper left corner.
  const int planes = image.interleaved ? 1 : output.channels;
  const int64_t pixel = image.interleaved ? output.channels : 1;
  for (int plane = 0; plane < planes; ++plane) {
    for (int row = 0; row < output.height; ++row) {
      const int64_t from =
          (int64_t{plane} * image.extents.height + chosen.top + row) * image.extents.width +
          chosen.left;
      const int64_t to = (int64_t{plane} * slot_extents.height + row) * slot_extents.width;
      std::memcpy(slot + to * pixel, image.bytes + from * pixel,
                  static_cast<size_t>(output.width * pixel));
    }
  }
  packed.top = packed.left = 0;
  packed.Store(window);
}

MeanImage DatumTransformer::Mean(int channels) const {
  if (!mean_.planes.values.empty()) return mean_.planes;
  MeanImage mean;
  if (param_.mean_value_size() == 0) return mean;
  CheckMeanValues(channels);
  mean.extents = {channels, 1, 1};
  for (int channel = 0; channel < channels; ++channel) mean.values.push_back(MeanOf(channel));
  return mean;
}

void DatumTransformer::TransformBoxes(const ImageExtents& image, uint64_t draw_index,
                                      std::vector<ObjectBox>* boxes) const {
  const Window window = ChooseWindow(image, draw_index);
  const ImageExtents output = OutputExtents(image);
  const auto part = [](int pixels, int of) {
    return static_cast<float>(pixels) / static_cast<float>(of);
  };
  ObjectBox cut;
  cut.xmin = part(window.left, image.width);
  cut.xmax = part(window.left + output.width, image.width);
  cut.ymin = part(window.top, image.height);
  cut.ymax = part(window.top + output.height, image.height);
  *boxes = BoxesInWindow(param_, cut, *boxes);
  if (!window.mirror) return;
  for (ObjectBox& box : *boxes) {
    box.xmin = 1 - std::exchange(box.xmax, 1 - box.xmin);
  }
}

}  // namespace caffe::data
