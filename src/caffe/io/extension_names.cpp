#include "caffe/io/extension_names.hpp"

#include <algorithm>

#include "caffe/core/field_names.hpp"
#include "caffe/io/source_text.hpp"
#include "caffe/io/text_walk.hpp"

namespace caffe {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

BracketedText::BracketedText(std::string_view text, const Descriptor* root) : original_(text) {
  size_t copied = 0, line_start = 0;
  int line = 0;
  std::string previous;
  TextWalk walk(text, root);
  for (; walk.Next(); walk.Enter()) {
    const auto& token = walk.token();
    const bool is_in_brackets = previous == "[" || previous == ".";
    previous = token.text;
    if (!walk.is_field_name() || is_in_brackets) continue;
    const FieldDescriptor* field = FindField(walk.frames().back().message, token.text);
    if (field == nullptr || !field->is_extension()) continue;
    for (; line < token.line; ++line) line_start = text.find('\n', line_start) + 1;
    const int byte = ColumnInText(text, token.line, token.column) - 1;
    const size_t begin = line_start + static_cast<size_t>(byte);
    const std::string bracketed = "[" + field->full_name() + "]";
    text_.append(text.substr(copied, begin - copied)).append(bracketed);
    copied = begin + token.text.size();
    changes_.push_back({token.line, byte, static_cast<int>(bracketed.size()),
                        static_cast<int>(token.text.size())});
  }
  text_.append(text.substr(copied));
}

int BracketedText::OriginalColumn(int line, int column) const {
  int byte = ColumnInText(text_, line, column) - 1, growth = 0;
  for (const Change& change : changes_) {
    if (change.line != line) continue;
    const int begin = change.byte + growth, end = begin + change.bracketed;
    if (byte <= begin) break;
    if (byte < end) {
      byte = begin;
      break;
    }
    growth += change.bracketed - change.name;
  }
  return ColumnOfByte(original_, line, byte - growth);
}

}  // namespace caffe
