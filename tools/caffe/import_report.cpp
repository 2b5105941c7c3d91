#include "tools/caffe/import_report.hpp"

#include <algorithm>
#include <iomanip>
#include <set>
#include <sstream>
#include <utility>

#include "caffe/core/counted.hpp"
#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"

namespace caffe::tools {
namespace {

constexpr size_t kMostLines = 20;  // listed in the text output; JSON lists all
constexpr uint64_t kImbalanced = 10;

std::string SizeOf(const data::ImageExtents& extents) {
  return StrCat(extents.height, "x", extents.width);
}

bool HasFewerPixels(const data::ImageExtents& a, const data::ImageExtents& b) {
  return int64_t{a.height} * a.width < int64_t{b.height} * b.width;
}

template <typename Key>
std::string Join(const std::map<Key, uint64_t>& counts) {
  std::string text;
  for (const auto& [key, count] : counts) text += StrCat(text.empty() ? "" : ", ", key, " ", count);
  return text;
}

// Channel means of an image of interleaved bytes.
std::vector<double> MeansOf(const data::Image& image) {
  const int channels = image.extents.channels;
  std::vector<double> means(channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) means[i % channels] += image.pixels[i];
  for (double& mean : means) mean *= double(channels) / double(image.pixels.size());
  return means;
}

std::string Row(const std::string& name, const std::string& text) {
  std::ostringstream row;
  row << "  " << std::left << std::setw(10) << name << text << "\n";
  return row.str();
}

}  // namespace

ImportReport::ImportReport(const ImageSet& set, std::string database)
    : source_(set.root), database_(std::move(database)), names_(set.names) {
  for (const auto& [label, name] : names_) images_of_class_[label] = 0;
  left_out_ = set.left_out;
  of_set_ = left_out_.size();
}

void ImportReport::AddFile(const ImportedImage& image) {
  ++formats_[image.format.empty() ? "other" : image.format];
  originals_.push_back(image.original);
}

void ImportReport::Add(const ImageFile& file, const ImportedImage& image) {
  AddFile(image);
  ++images_of_class_[file.label];
  const std::vector<double> means = MeansOf(image.pixels);
  sums_.resize(means.size());
  for (size_t i = 0; i < means.size(); ++i) sums_[i] += means[i];
  if (mean_ && images_ > 0 && !(image.pixels.extents == mean_->extents())) mean_.reset();
  if (mean_) mean_->Add(image.pixels.view());
  ++images_;
}

void ImportReport::AddValidation(const ImageFile&, const ImportedImage& image) {
  AddFile(image);
  ++validation_images_;
}

void ImportReport::AddBroken(const ImageFile& file, const std::string& reason) {
  left_out_.push_back({file.path, reason});
}

std::vector<double> ImportReport::ChannelMeans() const {
  std::vector<double> means;
  for (const double sum : sums_) means.push_back(sum / static_cast<double>(images_));
  return means;
}

std::vector<std::string> ImportReport::Warnings() const {
  std::vector<std::string> warnings;
  const auto [fewest, most] =
      std::minmax_element(images_of_class_.begin(), images_of_class_.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most->second >= kImbalanced * fewest->second && images_of_class_.size() > 1) {
    warnings.push_back(StrCat("the classes are imbalanced: '", names_.at(most->first), "' has ",
                              Counted(most->second, "image"), ", '", names_.at(fewest->first), "' ",
                              fewest->second));
  }
  if (!mean_) {
    warnings.push_back(
        "the images differ in size, so that there is no mean image, and a batch needs crop_size "
        "or resize_param; --resize=HxW gives them one size");
  }
  if (!left_out_.empty()) {
    warnings.push_back(StrCat(Counted(left_out_.size(), "file"),
                              left_out_.size() == 1 ? " was left out" : " were left out"));
  }
  return warnings;
}

std::string ImportReport::SizesToText() const {
  std::vector<data::ImageExtents> sorted = originals_;
  std::sort(sorted.begin(), sorted.end(), HasFewerPixels);
  return StrCat(SizeOf(sorted.front()), " (smallest), ", SizeOf(sorted[sorted.size() / 2]),
                " (median), ", SizeOf(sorted.back()), " (largest), height x width");
}

// The stored shape: channels x height x width.
std::string ImportReport::StoredToText() const {
  if (mean_) return StrCat(mean_->extents(), " (channels x height x width)");
  return StrCat(Counted(sums_.size(), "channel"), ", each image in its own size");
}

std::string ImportReport::ClassesToText() const {
  std::vector<std::pair<int, uint64_t>> classes(images_of_class_.begin(), images_of_class_.end());
  std::string title = StrCat(classes.size(), " with their images");
  if (classes.size() > kMostLines) {
    std::stable_sort(classes.begin(), classes.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    classes.erase(classes.begin() + kMostLines / 2, classes.end() - kMostLines / 2);
    title += ", the largest and the smallest";
  }
  std::string text = Row("classes", title);
  for (const auto& [label, images] : classes) {
    text += StrCat("    ", label, " ", Printable(names_.at(label)), ": ", images, "\n");
  }
  return text;
}

std::string ImportReport::MeanToText() const {
  std::ostringstream text;
  for (const double mean : ChannelMeans())
    text << std::fixed << std::setprecision(3) << mean << ' ';
  text << (ChannelMeans().size() == 1 ? "(gray)" : "(blue, green, red: mean_value)");
  if (mean_) text << ", " << database_ << "/mean.binaryproto (mean_file)";
  return text.str();
}

std::string ImportReport::ToText() const {
  std::string text = StrCat(source_, " -> ", database_, ": ", Counted(images_, "image"), "\n");
  if (!validation_database_.empty()) {
    text += StrCat(std::string(source_.size(), ' '), " -> ", validation_database_, ": ",
                   Counted(validation_images_, "image"), "\n");
  }
  text += Row("sizes", SizesToText()) + Row("stored", StoredToText()) +
          Row("formats", Join(formats_)) + Row("mean", MeanToText()) + ClassesToText();
  if (!left_out_.empty()) text += Row("left out", Counted(left_out_.size(), "file"));
  for (size_t i = 0; i < std::min(left_out_.size(), kMostLines); ++i) {
    text +=
        StrCat("    ", Printable(left_out_[i].path), ": ", Printable(left_out_[i].reason), "\n");
  }
  if (left_out_.size() > kMostLines) {
    text += StrCat("    and ", left_out_.size() - kMostLines, " more; --json lists all\n");
  }
  for (const std::string& warning : Warnings()) text += "warning: " + warning + "\n";
  return text;
}

JsonObject ImportReport::ToJson() const {
  JsonObject root;
  PutJson(&root, "database", database_);
  PutJson(&root, "images", images_);
  if (!validation_database_.empty()) {
    PutJson(&root, "validation_database", validation_database_);
    PutJson(&root, "validation_images", validation_images_);
  }
  std::vector<data::ImageExtents> sorted = originals_;
  std::sort(sorted.begin(), sorted.end(), HasFewerPixels);
  JsonObject* sizes = JsonField(&root, "sizes");
  PutJson(sizes, "smallest", SizeOf(sorted.front()));
  PutJson(sizes, "median", SizeOf(sorted[sorted.size() / 2]));
  PutJson(sizes, "largest", SizeOf(sorted.back()));
  PutJson(&root, "channels", sums_.size());
  if (mean_) PutJson(&root, "stored_size", SizeOf(mean_->extents()));
  for (const auto& [format, count] : formats_) PutJson(JsonField(&root, "formats"), format, count);
  for (const double mean : ChannelMeans()) AddJson(&root, "mean_values", mean);
  if (mean_) PutJson(&root, "mean_file", database_ + "/mean.binaryproto");
  for (const auto& [label, images] : images_of_class_) {
    JsonObject* one = AddJson(&root, "classes");
    PutJson(one, "label", label);
    PutJson(one, "name", names_.at(label));
    PutJson(one, "images", images);
  }
  MakeJsonList(&root, "left_out");
  for (const LeftOut& file : left_out_) {
    JsonObject* one = AddJson(&root, "left_out");
    PutJson(one, "file", file.path);
    PutJson(one, "reason", file.reason);
  }
  MakeJsonList(&root, "warnings");
  for (const std::string& warning : Warnings()) AddJson(&root, "warnings", warning);
  return root;
}

}  // namespace caffe::tools
