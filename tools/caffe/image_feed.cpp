#include "tools/caffe/image_feed.hpp"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <sstream>
#include <system_error>

#include "caffe/core/printable.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/net_files.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/net.hpp"
#include "tools/parallel.hpp"

namespace caffe::tools {
namespace {

namespace fs = std::filesystem;

// The transform_param of the net's first data layer in phase TEST. Throws InvalidArgument if there
// is none.
TransformationParameter TransformOfData(const std::string& file) {
  NetParameter net = ReadNetText(file);
  SetNetState(TEST, 0, {}, &net);
  const NetParameter filtered = Net::FilterNet(net);
  for (const LayerParameter& layer : filtered.layer()) {
    if (layer.bottom_size() == 0 && layer.has_transform_param()) return layer.transform_param();
  }
  throw InvalidArgument(StrCat("--data: no layer of ", file,
                               " has a transform_param in phase TEST; give --mean_values or "
                               "--mean_file, and --scale"));
}

void AddMeanValues(const std::string& text, TransformationParameter* param) {
  param->clear_mean_value();
  for (const std::string& part : SplitByComma(text)) {
    float value = 0;
    const char* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, value);
    Require(error == std::errc() && rest == end, "--mean_values is '", text,
            "'; give one number, or one for each channel, as in 104,117,123");
    param->add_mean_value(value);
  }
}

// Adds all files below a folder in the order of their names, except hidden ones.
void AddFolder(const std::string& folder, std::vector<std::string>* files) {
  std::vector<std::string> found;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unknown;  // ignored, e.g. for a dangling link
    const bool is_hidden = entry->path().filename().string().starts_with('.');
    if (is_hidden && entry->is_directory(unknown)) entry.disable_recursion_pending();
    if (!is_hidden && entry->is_regular_file(unknown)) found.push_back(entry->path().string());
  }
  if (error) throw IoError(StrCat(Printable(folder), ": ", error.message()));
  std::sort(found.begin(), found.end());
  files->insert(files->end(), found.begin(), found.end());
}

// Each line is a path; after its last space or tab a label may follow, as converters expect.
void AddList(const std::string& list, std::vector<std::string>* files) {
  std::istringstream lines(ReadTextFile(list));
  const fs::path folder = fs::path(list).parent_path();
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (line.empty()) continue;
    const size_t space = line.find_last_of(" \t");
    const bool has_label = space != std::string::npos &&
                           line.find_first_not_of("0123456789", space + 1) == std::string::npos;
    if (has_label) line.erase(line.find_last_not_of(" \t", space) + 1);
    files->push_back((folder / line).string());
  }
}

std::vector<std::string> FilesOf(const ImageFlags& flags) {
  std::vector<std::string> files;
  for (const std::string& image : flags.images) {
    std::error_code unknown;
    if (fs::is_directory(image, unknown)) {
      AddFolder(image, &files);
    } else {
      files.push_back(image);
    }
  }
  if (!flags.list.empty()) AddList(flags.list, &files);
  Require(!files.empty(),
          "no image is given; name the model and then files, folders, --image_list, --video or "
          "--camera");
  return files;
}

// Converts three channels, blue first, to gray (ITU-R BT.601).
data::Image Gray(const data::Image& color) {
  data::Image gray{{1, color.extents.height, color.extents.width}, {}};
  for (size_t i = 0; i + 2 < color.pixels.size(); i += 3) {
    const uint8_t* pixel = color.pixels.data() + i;
    gray.pixels.push_back(
        static_cast<uint8_t>(std::lround(0.114 * pixel[0] + 0.587 * pixel[1] + 0.299 * pixel[2])));
  }
  return gray;
}

// Resizes by the shorter side with --short_side, else as `info` says; not at all by default.
ResizeParameter ResizeOf(const ImageFlags& flags) {
  if (flags.short_side == 0) return flags.info.resize();
  ResizeParameter resize;
  resize.set_resize_mode(ResizeParameter::FIT_SMALL_SIZE);
  resize.set_height(static_cast<uint32_t>(flags.short_side));
  return resize;
}

}  // namespace

void ImageFlags::Add(CLI::App& app) {
  app.add_option("images", images, "Image files, and folders of them")
      ->type_name("IMAGE")
      ->default_str("none");
  app.add_option("--image_list", list, "A file with the path of an image in each line")
      ->type_name("FILE");
  app.add_option("--video", video, "A video, of which each frame is an image")->type_name("FILE");
  app.add_option("--camera", camera, "The number of a camera")->type_name("N")->default_str("none");
  app.add_option("--frames", frames, "End after so many frames of the video or camera")
      ->type_name("N")
      ->default_str("all");
  app.add_option("--data", data,
                 "A net prototxt, such as train_val.prototxt: images are transformed as its data "
                 "layer of phase TEST says")
      ->type_name("FILE");
  app.add_option("--mean_values", mean_values, "Subtract these from the channels: 104,117,123")
      ->type_name("VALUES");
  app.add_option("--mean_file", mean_file,
                 "Subtract a mean image (.binaryproto); images are stretched to its size, and the "
                 "centre is cut out")
      ->type_name("FILE");
  scale_option =
      app.add_option("--scale", scale, "Multiply by this after that")->type_name("FACTOR");
  app.add_option("--short_side", short_side,
                 "Resize so that the shorter side has so many pixels, and cut out the centre, "
                 "instead of stretching the image to the net's input")
      ->type_name("PIXELS")
      ->default_str("stretch");
  app.add_option("--batch", batch, "Images that go through the net together")
      ->type_name("N")
      ->default_str("1");
}

void ImageFlags::Check() const {
  const bool has_files = !images.empty() || !list.empty();
  const int sources = (has_files ? 1 : 0) + (video.empty() ? 0 : 1) + (camera < 0 ? 0 : 1);
  Require(sources == 1, sources == 0 ? "no image is given" : "several sources of images are given",
          "; name files, folders or --image_list, or a --video, or a --camera");
  Require(mean_file.empty() || mean_values.empty(),
          "--mean_file and --mean_values exclude each other; give one");
  Require(batch >= 0, "--batch is ", batch, "; it must be positive");
  Require(short_side >= 0, "--short_side is ", short_side, "; it must be positive");
  Require(frames >= 0, "--frames is ", frames, "; it must be positive");
}

TransformationParameter ImageFlags::Transform() const {
  TransformationParameter param;
  param.set_scale(info.scale());
  if (!says_mean()) *param.mutable_mean_value() = info.mean_value();
  if (!data.empty()) {
    const TransformationParameter of_data = TransformOfData(data);
    param.set_scale(of_data.scale());
    *param.mutable_mean_value() = of_data.mean_value();
    if (of_data.has_mean_file()) param.set_mean_file(of_data.mean_file());
  }
  if (!mean_values.empty()) {
    param.clear_mean_file();
    AddMeanValues(mean_values, &param);
  }
  if (!mean_file.empty()) {
    param.clear_mean_value();
    param.set_mean_file(mean_file);
  }
  if (scale_option != nullptr && scale_option->count() > 0) {
    param.set_scale(static_cast<float>(scale));
  }
  return param;
}

ImageFeed::ImageFeed(const ImageFlags& flags, const Extents& extents)
    : batch_(extents.batch),
      transform_(ResizeOf(flags), flags.Transform(), flags.mean_image(), extents.image),
      last_frame_(flags.frames) {
  if (!flags.video.empty() || flags.camera >= 0) {
    video_name_ = flags.video.empty() ? StrCat("camera ", flags.camera) : flags.video;
    frames_ = data::VideoFrames::Open(flags.video.empty() ? nullptr : flags.video.c_str(),
                                      std::max(flags.camera, 0));
  } else {
    files_ = FilesOf(flags);
  }
  next_ = std::async(std::launch::async, [this] { return Prepare(); });
}

ImageFeed::~ImageFeed() {
  if (next_.valid()) next_.wait();
}

ImageFeed::Batch ImageFeed::Next() {
  Batch batch = next_.get();
  num_failed_ = num_failed_ahead_;
  next_ = std::async(std::launch::async, [this] { return Prepare(); });
  return batch;
}

ImageFeed::Batch ImageFeed::Prepare() {
  Batch batch;
  while (batch.images.empty()) {
    std::vector<ShownImage> read = Read();
    if (read.empty()) break;
    std::vector<std::vector<float>> values(read.size());
    ParallelFor(read.size(), [&](size_t i) { values[i] = Transformed(read[i]); });
    for (size_t i = 0; i < read.size(); ++i) {
      if (values[i].empty()) {
        ++num_failed_ahead_;
        continue;
      }
      batch.values.insert(batch.values.end(), values[i].begin(), values[i].end());
      read[i].seen = transform_.PartSeen(read[i].pixels.extents);
      batch.images.push_back(std::move(read[i]));
    }
  }
  return batch;
}

// Returns an empty vector, after logging why, if the image cannot be transformed.
std::vector<float> ImageFeed::Transformed(const ShownImage& image) const {
  try {
    return transform_.Transform(image.pixels);
  } catch (const Error& error) {
    LOG(WARNING) << Printable(image.name) << ": " << error.what();
    return {};
  }
}

std::vector<ShownImage> ImageFeed::Read() {
  return frames_ != nullptr ? ReadFrames() : ReadFiles();
}

std::vector<ShownImage> ImageFeed::ReadFiles() {
  std::vector<ShownImage> images;
  while (images.empty() && next_file_ < files_.size()) {
    const size_t count = std::min<size_t>(batch_, files_.size() - next_file_);
    std::vector<std::optional<ShownImage>> read(count);
    ParallelFor(count, [&](size_t i) {
      const std::string& file = files_[next_file_ + i];
      try {
        read[i] = {file, data::DecodeImage(ReadFile(file), transform_.color_mode()), {}};
      } catch (const Error& error) {
        const std::string what = error.what();  // names a file that cannot be opened
        LOG(WARNING) << (what.starts_with(file + ": ") ? "" : Printable(file) + ": ") << what;
      }
    });
    next_file_ += count;
    for (std::optional<ShownImage>& image : read) {
      if (image) {
        images.push_back(std::move(*image));
      } else {
        ++num_failed_ahead_;
      }
    }
  }
  return images;
}

std::vector<ShownImage> ImageFeed::ReadFrames() {
  std::vector<ShownImage> images;
  while (static_cast<int>(images.size()) < batch_ &&
         (last_frame_ == 0 || next_frame_ < last_frame_)) {
    data::Image frame;
    if (!frames_->Read(&frame)) break;
    if (transform_.color_mode() == data::ColorMode::kGray) frame = Gray(frame);
    images.push_back({StrCat(video_name_, "#", next_frame_++), std::move(frame), {}});
  }
  return images;
}

}  // namespace caffe::tools
