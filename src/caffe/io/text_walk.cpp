#include "caffe/io/text_walk.hpp"

#include "caffe/core/field_names.hpp"

namespace caffe {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::Tokenizer;

TextWalk::TextWalk(std::string_view text, const Descriptor* root)
    : stream_(text.data(), static_cast<int>(text.size())),
      tokenizer_(&stream_, &silent_),
      frames_{{root, "", ""}} {
  tokenizer_.set_allow_f_after_float(true);
  tokenizer_.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer_.set_require_space_after_number(false);
  tokenizer_.set_allow_multiline_strings(true);
}

bool TextWalk::Next() {
  return tokenizer_.Next();
}

bool TextWalk::is_field_name() const {
  return token().type == Tokenizer::TYPE_IDENTIFIER && !expects_value_;
}

void TextWalk::Enter() {
  const std::string& text = token().text;
  if (is_field_name()) field_ = text;
  if (token().type == Tokenizer::TYPE_STRING && field_ == "name") {
    Tokenizer::ParseString(text, &frames_.back().name);
  }
  if (text == "{" || text == "<") {
    const FieldDescriptor* field = FindField(frames_.back().message, field_);
    frames_.push_back(
        {field ? field->message_type() : nullptr, field_, "", token().line, token().column});
  } else if ((text == "}" || text == ">") && frames_.size() > 1) {
    field_ = frames_.back().opened_by;
    frames_.pop_back();
  }
  expects_value_ = text == ":";
}

}  // namespace caffe
