#include "caffe/io/detection_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::vector<ImageSize> ReadImageSizes(const std::string& path) {
  std::istringstream file(ReadFile(path));
  std::vector<ImageSize> sizes;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream words(line);
    ImageSize size;
    words >> size.name >> size.height >> size.width;
    Require(words && size.height > 0 && size.width > 0, path, ":", number, ": '", line,
            "' is not an image's name, height and width");
    sizes.push_back(std::move(size));
  }
  return sizes;
}

DetectionFiles::DetectionFiles(const SaveOutputParameter& param, int background_label)
    : param_(param) {
  const std::string& format = param.output_format();
  Require(format == "VOC" || format == "COCO" || format == "ILSVRC",
          "save_output_param: output_format is '", format, "'; give VOC, COCO or ILSVRC");
  Require(!param.label_map_file().empty() && !param.name_size_file().empty(),
          "save_output_param: give label_map_file and name_size_file, the names of classes and "
          "images");
  std::error_code error;
  std::filesystem::create_directories(param.output_directory(), error);
  Require(std::filesystem::is_directory(param.output_directory()),
          "save_output_param: output_directory '", param.output_directory(),
          "' is no folder and cannot be made: ", error.message());
  LabelMap labels;
  ReadTextProto(param.label_map_file(), &labels);
  for (const LabelMapItem& item : labels.item()) class_names_[item.label()] = item.name();
  class_names_.erase(background_label);
  sizes_ = ReadImageSizes(param.name_size_file());
  if (format == "COCO") RequireNumbers();
  images_ = param.has_num_test_image() ? param.num_test_image() : sizes_.size();
  Require(0 < images_ && images_ <= sizes_.size(), "save_output_param: num_test_image is ", images_,
          ", and ", param.name_size_file(), " has ", sizes_.size(), " images");
}

void DetectionFiles::RequireNumbers() const {
  for (const auto& [label, name] : class_names_) {
    Require(IsNumber(name), param_.label_map_file(),
            ": output_format COCO needs classes whose names are numbers; '", name, "' is none");
  }
  for (const ImageSize& size : sizes_) {
    Require(IsNumber(size.name), param_.name_size_file(),
            ": output_format COCO needs images whose names are numbers; '", size.name, "' is none");
  }
}

void DetectionFiles::AddImage(const std::vector<Detection>& detections) {
  const ImageSize& size = sizes_[next_];
  for (const Detection& one : detections) {
    Require(class_names_.count(one.label) == 1, "a detection has class ", one.label, ", which ",
            param_.label_map_file(), " does not name");
    rows_.push_back({&size, InPixels(one, size)});
  }
  if (++next_ < images_) return;
  Write();
  rows_.clear();
  next_ = 0;
}

// Takes back what resize_param made of the original image.
DetectionFiles::Detection DetectionFiles::InPixels(const Detection& detection,
                                                   const ImageSize& size) const {
  Detection found = detection;
  if (param_.has_resize_param() &&
      param_.resize_param().resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD) {
    const double height = param_.resize_param().height(), width = param_.resize_param().width();
    const double factor = std::min(height / size.height, width / size.width);
    const double part_x = factor * size.width / width, part_y = factor * size.height / height;
    const auto unpad = [](double at, double part) { return (at - (1 - part) / 2) / part; };
    found.xmin = unpad(found.xmin, part_x), found.xmax = unpad(found.xmax, part_x);
    found.ymin = unpad(found.ymin, part_y), found.ymax = unpad(found.ymax, part_y);
  }
  const auto scaled = [](double at, int side) { return std::clamp(at, 0.0, 1.0) * side; };
  found.xmin = scaled(found.xmin, size.width), found.xmax = scaled(found.xmax, size.width);
  found.ymin = scaled(found.ymin, size.height), found.ymax = scaled(found.ymax, size.height);
  return found;
}

std::string DetectionFiles::PathOf(const std::string& ending) const {
  return (std::filesystem::path(param_.output_directory()) / (param_.output_name_prefix() + ending))
      .string();
}

void DetectionFiles::Write() const {
  if (param_.output_format() == "VOC") return WriteVoc();
  if (param_.output_format() == "COCO") return WriteCoco();
  WriteIlsvrc();
}

// A class without detections has an empty file, which the challenge's tools ask for.
void DetectionFiles::WriteVoc() const {
  for (const auto& [label, name] : class_names_) {
    std::ostringstream text;
    for (const auto& [image, one] : rows_) {
      if (one.label != label) continue;
      text << image->name << ' ' << one.score << ' ' << one.xmin << ' ' << one.ymin << ' '
           << one.xmax << ' ' << one.ymax << '\n';
    }
    WriteFileAtomically(PathOf(name + ".txt"), text.str());
  }
}

void DetectionFiles::WriteCoco() const {
  std::ostringstream text;
  const char* separator = "[\n";
  for (const auto& [image, one] : rows_) {
    text << separator << "{\"image_id\": " << image->name
         << ", \"category_id\": " << class_names_.at(one.label) << ", \"bbox\": [" << one.xmin
         << ", " << one.ymin << ", " << one.xmax - one.xmin << ", " << one.ymax - one.ymin
         << "], \"score\": " << one.score << '}';
    separator = ",\n";
  }
  text << (rows_.empty() ? "[]\n" : "\n]\n");
  WriteFileAtomically(PathOf(".json"), text.str());
}

void DetectionFiles::WriteIlsvrc() const {
  std::ostringstream text;
  for (const auto& [image, one] : rows_) {
    text << image->name << ' ' << one.label << ' ' << one.score << ' ' << one.xmin << ' '
         << one.ymin << ' ' << one.xmax << ' ' << one.ymax << '\n';
  }
  WriteFileAtomically(PathOf(".txt"), text.str());
}

}  // namespace caffe
