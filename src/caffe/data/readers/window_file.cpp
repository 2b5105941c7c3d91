#include "caffe/data/readers/window_file.hpp"

#include <algorithm>
#include <sstream>

#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe::data {
namespace {

// Largest coordinate of a pixel: larger than in any image, and small enough to avoid overflow.
constexpr int kLargestCoordinate = 1 << 24;

class Lines {
 public:
  explicit Lines(const std::string& path) : path_(path), file_(ReadTextFile(path)) {}

  // Reads the next non-empty line; false at the end.
  bool Next(std::string* line) {
    while (std::getline(file_, *line)) {
      ++number_;
      line->erase(line->find_last_not_of(" \t\r") + 1);
      if (!line->empty()) return true;
    }
    return false;
  }

  std::string Expect(const char* what) {
    std::string line;
    if (!Next(&line)) throw IoError(StrCat(path_, ": ends where ", what, " should follow"));
    return line;
  }

  // Parses the fields of a line, all of them numbers.
  template <typename... T>
  void Parse(const std::string& line, const char* what, T*... parts) const {
    std::istringstream stream(line);
    (stream >> ... >> *parts);
    std::string rest;
    if (stream.fail() || (stream >> rest)) {
      throw IoError(StrCat(path_, ":", number_, ": expected ", what, ", got '", line, "'"));
    }
  }

  int number() const { return number_; }

 private:
  const std::string path_;
  std::istringstream file_;
  int number_ = 0;
};

class Numbers final : public RecordReader {
 public:
  explicit Numbers(uint64_t count) : count_(count) {}

  uint64_t count() const override { return count_; }
  bool First(Record* record) override { return Move(0, record); }
  bool Next(Record* record) override { return Move(position_ + 1, record); }
  bool Seek(std::string_view, Record* record) override { return Move(position_, record); }

 private:
  bool Move(uint64_t position, Record* record) {
    if (position >= count_) return false;
    position_ = position;
    *record = {"window", {}};
    return true;
  }

  const uint64_t count_;
  uint64_t position_ = 0;
};

}  // namespace

WindowFile ReadWindowFile(const std::string& path) {
  Lines lines(path);
  WindowFile file;
  for (std::string line; lines.Next(&line);) {
    int index = 0, channels = 0, height = 0, width = 0, count = 0;
    char hash = 0;
    lines.Parse(line, "'# INDEX' of the next image", &hash, &index);
    if (hash != '#') lines.Parse("", "'# INDEX' of the next image", &hash);
    file.images.push_back(lines.Expect("an image's path"));
    lines.Parse(lines.Expect("the number of channels"), "the number of channels", &channels);
    lines.Parse(lines.Expect("the height"), "the height", &height);
    lines.Parse(lines.Expect("the width"), "the width", &width);
    lines.Parse(lines.Expect("the number of windows"), "the number of windows", &count);
    for (int i = 0; i < count; ++i) {
      Window window;
      window.image = static_cast<int>(file.images.size()) - 1;
      lines.Parse(lines.Expect("a window"), "'LABEL OVERLAP X1 Y1 X2 Y2'", &window.label,
                  &window.overlap, &window.x1, &window.y1, &window.x2, &window.y2);
      const auto [least, most] = std::minmax({window.x1, window.y1, window.x2, window.y2});
      if (least < -kLargestCoordinate || most > kLargestCoordinate) {
        throw IoError(StrCat(path, ":", lines.number(), ": a window at ", window.x1, " ", window.y1,
                             " ", window.x2, " ", window.y2, "; coordinates are pixels, at most ",
                             kLargestCoordinate));
      }
      file.windows.push_back(window);
    }
  }
  if (file.windows.empty()) throw IoError(StrCat(path, ": the file has no windows"));
  return file;
}

std::unique_ptr<RecordReader> OpenNumbers(uint64_t count) {
  return std::make_unique<Numbers>(count);
}

}  // namespace caffe::data
