#include "caffe/io/source_text.hpp"

#include <algorithm>

#include "caffe/error.hpp"
#include "caffe/io/text_file.hpp"

namespace caffe {

std::string_view LineOfText(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

int ColumnInText(std::string_view text, int line, int column) {
  int characters = 0, width = 0;
  for (const char letter : LineOfText(text, line)) {
    if (width >= column) break;
    width = letter == '\t' ? (width / 8 + 1) * 8 : width + 1;
    ++characters;
  }
  return characters + 1;
}

int ColumnOfByte(std::string_view text, int line, int byte) {
  int width = 0;
  for (const char letter : LineOfText(text, line).substr(0, static_cast<size_t>(byte))) {
    width = letter == '\t' ? (width / 8 + 1) * 8 : width + 1;
  }
  return width;
}

std::string TextOfPlace(const SourcePlace& place) {
  return StrCat(place.file->path, ":", place.line + 1, ":",
                ColumnInText(place.file->text, place.line, place.column));
}

std::string ErrorAt(const SourcePlace& place, const std::string& what) {
  // The line with tabs expanded.
  std::string drawn;
  for (const char letter : LineOfText(place.file->text, place.line)) {
    drawn += letter == '\t' ? std::string(8 - drawn.size() % 8, ' ') : std::string(1, letter);
  }
  constexpr size_t kWidth = 100;
  std::string excerpt;
  if (drawn.size() <= kWidth) {
    excerpt =
        StrCat("\n  ", drawn, "\n  ", std::string(static_cast<size_t>(place.column), ' '), "^");
  }
  return StrCat(TextOfPlace(place), ": ", what, excerpt);
}

SourceText::SourceText(const std::string& path, std::string_view text) {
  AddFile(path, text);
}

const SourceFile& SourceText::AddFile(const std::string& path, std::string_view text) {
  text = WithoutByteOrderMark(text, path);
  Require(text.find('\0') == std::string_view::npos, path, ": this is not text (byte ",
          text.find('\0') + 1, " of ", text.size(),
          " is 0); a definition is a prototxt, weights are given separately");
  files_.push_back(std::make_unique<SourceFile>(SourceFile{path, std::string(text)}));
  return *files_.back();
}

int SourceText::AddUse(const BlockUse& use) {
  uses_.push_back(use);
  return static_cast<int>(uses_.size()) - 1;
}

void SourceText::Advance(std::string_view part) {
  expanded_ += part;
  const size_t end = part.rfind('\n');
  line_ += static_cast<int>(std::count(part.begin(), part.end(), '\n'));
  if (end != std::string_view::npos) column_ = 0;
  column_ += static_cast<int>(end == std::string_view::npos ? part.size() : part.size() - end - 1);
}

void SourceText::Append(std::string_view part, const SourcePlace& origin, int use) {
  marks_.push_back({line_, column_, use, origin});
  Advance(part);
}

void SourceText::AppendBlank(std::string_view blank) {
  Advance(blank);
}

const SourceText::Mark* SourceText::MarkAt(int line, int column) const {
  const auto is_after = [&](const std::pair<int, int>& position, const Mark& mark) {
    return position < std::pair(mark.line, mark.column);
  };
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), std::pair(line, column), is_after);
  return next == marks_.begin() ? nullptr : &*(next - 1);
}

SourcePlace SourceText::Origin(int line, int column) const {
  if (!is_expanded_) return {files_.front().get(), line, column};
  const Mark* mark = MarkAt(line, column);
  return mark == nullptr ? SourcePlace{files_.front().get(), 0, 0} : mark->origin;
}

std::string SourceText::ChainAt(int line, int column) const {
  const Mark* mark = is_expanded_ ? MarkAt(line, column) : nullptr;
  return mark == nullptr ? "" : Chain(mark->use);
}

std::string SourceText::Chain(int use) const {
  constexpr int kMostShown = 8;
  std::string text;
  int shown = 0, more = 0;
  for (; use >= 0; use = uses_[static_cast<size_t>(use)].caller) {
    const BlockUse& one = uses_[static_cast<size_t>(use)];
    if (++shown > kMostShown) {
      ++more;
      continue;
    }
    text += StrCat(text.empty() ? "; " : ", ", "used at ", TextOfPlace(one.place));
    if (one.repeat > 1) text += StrCat(" (repeat ", one.index, " of ", one.repeat, ")");
  }
  return more == 0 ? text : StrCat(text, " and ", more, " more");
}

}  // namespace caffe
