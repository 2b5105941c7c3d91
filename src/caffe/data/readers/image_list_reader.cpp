#include "caffe/data/readers/image_list_reader.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "caffe/core/printable.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe::data {
namespace {

class ImageListReader final : public RecordReader {
 public:
  // `image_of` returns the path in a line, and throws if the line is invalid.
  ImageListReader(const std::string& path, std::string_view (*image_of)(std::string_view)) {
    std::istringstream file(ReadTextFile(path));
    int number = 0;
    for (std::string line; std::getline(file, line);) {
      ++number;
      line.erase(line.find_last_not_of(" \t\r") + 1);
      if (line.empty()) continue;
      const std::string_view image =
          WithContext(StrCat(path, ":", number), [&] { return image_of(line); });
      keys_.push_back(StrCat(number, ": ", image));
      lines_.push_back(std::move(line));
    }
  }

  uint64_t count() const override { return lines_.size(); }
  bool First(Record* record) override { return Move(0, record); }
  bool Next(Record* record) override { return Move(position_ + 1, record); }
  bool Seek(std::string_view key, Record* record) override {
    size_t position = 0;
    while (position < keys_.size() && keys_[position] != key) ++position;
    return Move(position, record);
  }

 private:
  bool Move(size_t position, Record* record) {
    if (position >= lines_.size()) return false;
    position_ = position;
    *record = {keys_[position], lines_[position]};
    return true;
  }

  std::vector<std::string> keys_, lines_;
  size_t position_ = 0;
};

}  // namespace

ImageListEntry ParseImageListLine(std::string_view line) {
  const size_t space = line.find_last_of(" \t");
  ImageListEntry entry;
  const std::string_view label = space == line.npos ? std::string_view() : line.substr(space + 1);
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), entry.label);
  Require(!label.empty() && error == std::errc() && end == label.data() + label.size(), "'",
          Printable(line), "' has no label; lines are a path, a space and a whole number");
  entry.path = line.substr(0, line.find_last_not_of(" \t", space) + 1);
  Require(!entry.path.empty(), "'", Printable(line), "' has no path before the label");
  return entry;
}

std::unique_ptr<RecordReader> OpenImageList(const std::string& path) {
  return std::make_unique<ImageListReader>(
      path, [](std::string_view line) { return ParseImageListLine(line).path; });
}

ImagePair ParseImagePair(std::string_view line) {
  const size_t space = line.find_last_of(" \t");
  Require(
      space != line.npos && space > 0, "'", line,
      "' has no second path; lines are the path of an image, a space and the path of its labels");
  return {line.substr(0, line.find_last_not_of(" \t", space) + 1), line.substr(space + 1)};
}

std::string_view FirstWord(std::string_view line) {
  const std::string_view word = line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
  return word.substr(0, word.find_first_of(" \t"));
}

std::unique_ptr<RecordReader> OpenImageNames(const std::string& path) {
  return std::make_unique<ImageListReader>(path, FirstWord);
}

std::unique_ptr<RecordReader> OpenImagePairs(const std::string& path) {
  return std::make_unique<ImageListReader>(
      path, [](std::string_view line) { return ParseImagePair(line).image; });
}

}  // namespace caffe::data
