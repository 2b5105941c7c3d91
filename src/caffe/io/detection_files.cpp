#include "caffe/io/detection_files.hpp"

#include <glog/logging.h>

#include <cmath>
#include <filesystem>
#include <sstream>

#include "caffe/core/paths.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/text_format.hpp"

namespace caffe {
namespace {

bool IsNumber(const std::string& text) {
  return !text.empty() && text.size() < 19 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

// Converts to a number, because JSON does not allow leading zeros.
int64_t NumberOf(const std::string& text) {
  return std::stoll(text);
}

// True if a file with that name stays within its folder.
bool IsFileName(const std::string& name) {
  return !name.empty() && name.find('/') == std::string::npos && name == Printable(name);
}

}  // namespace

std::unique_ptr<DetectionFiles> MakeDetectionFiles(const SaveOutputParameter& param,
                                                   int background_label) {
  if (param.output_directory().empty()) return nullptr;
  const char* const missing = param.label_map_file().empty()   ? "label_map_file"
                              : param.name_size_file().empty() ? "name_size_file"
                                                               : nullptr;
  if (missing == nullptr) return std::make_unique<DetectionFiles>(param, background_label);
  LOG(WARNING) << "save_output_param has output_directory '" << param.output_directory()
               << "' but no " << missing << ": no detections are saved";
  return nullptr;
}

DetectionFiles::DetectionFiles(const SaveOutputParameter& param, int background_label)
    : param_(param) {
  const std::string& format = param.output_format();
  Require(format == "VOC" || format == "COCO" || format == "ILSVRC",
          "save_output_param: output_format is '", format, "'; give VOC, COCO or ILSVRC");
  std::error_code error;
  std::filesystem::create_directories(param.output_directory(), error);
  Require(IsFolder(param.output_directory()), "save_output_param: output_directory '",
          param.output_directory(), "' is not a folder and cannot be made: ", error.message());
  LabelMap labels;
  ReadTextProto(param.label_map_file(), &labels);
  for (const LabelMapItem& item : labels.item()) {
    Require(format != "VOC" || IsFileName(item.name()), param.label_map_file(), ": class ",
            item.label(), " has the name '", Printable(item.name()),
            "', and VOC files are named after classes; give a name without slashes");
    class_names_[item.label()] = item.name();
  }
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
  for (const NamedImageSize& size : sizes_) {
    Require(IsNumber(size.name), param_.name_size_file(),
            ": output_format COCO needs images whose names are numbers; '", size.name, "' is none");
  }
}

void DetectionFiles::AddImage(const std::vector<Detection>& detections) {
  const NamedImageSize& size = sizes_[next_];
  for (const Detection& one : detections) {
    Require(std::isfinite(one.score), "a detection in image ", size.name, " has score ", one.score);
    Require(class_names_.count(one.label) == 1, "a detection has class ", one.label, ", which ",
            param_.label_map_file(), " does not name");
    rows_.push_back({&size, one.label, one.score, InPixels(one.box, size, param_.resize_param())});
  }
  if (++next_ < images_) return;
  Write();
  rows_.clear();
  next_ = 0;
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

// Writes an empty file for a class without detections, which the challenge's tools require.
void DetectionFiles::WriteVoc() const {
  for (const auto& [class_label, name] : class_names_) {
    std::ostringstream text;
    for (const auto& [image, label, score, box] : rows_) {
      if (label != class_label) continue;
      text << image->name << ' ' << score << ' ' << box.xmin << ' ' << box.ymin << ' ' << box.xmax
           << ' ' << box.ymax << '\n';
    }
    WriteFileAtomically(PathOf(name + ".txt"), text.str());
  }
}

void DetectionFiles::WriteCoco() const {
  std::ostringstream text;
  const char* separator = "[\n";
  for (const auto& [image, label, score, box] : rows_) {
    text << separator << "{\"image_id\": " << NumberOf(image->name)
         << ", \"category_id\": " << NumberOf(class_names_.at(label)) << ", \"bbox\": [" << box.xmin
         << ", " << box.ymin << ", " << box.xmax - box.xmin << ", " << box.ymax - box.ymin
         << "], \"score\": " << score << '}';
    separator = ",\n";
  }
  text << (rows_.empty() ? "[]\n" : "\n]\n");
  WriteFileAtomically(PathOf(".json"), text.str());
}

void DetectionFiles::WriteIlsvrc() const {
  std::ostringstream text;
  for (const auto& [image, label, score, box] : rows_) {
    text << image->name << ' ' << label << ' ' << score << ' ' << box.xmin << ' ' << box.ymin << ' '
         << box.xmax << ' ' << box.ymax << '\n';
  }
  WriteFileAtomically(PathOf(".txt"), text.str());
}

}  // namespace caffe
