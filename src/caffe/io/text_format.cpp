#include "caffe/io/text_format.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <optional>
#include <vector>

#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::Tokenizer;

// Position as protobuf counts: from 0, tabs reach to the next multiple of 8.
struct Position {
  int line = -1;
  int column = 0;
  bool operator<(const Position& other) const {
    return line != other.line ? line < other.line : column < other.column;
  }
};

class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (message_.empty()) {
      position_ = {line, column};
      message_ = message;
    }
  }
  void AddWarning(int, int, const std::string&) override {}

  const Position& position() const { return position_; }
  const std::string& message() const { return message_; }

 private:
  Position position_;
  std::string message_;
};

// What surrounds a position: the message it lies in, the field being read, the layer's name.
struct Surroundings {
  const Descriptor* message = nullptr;
  std::string field;
  std::string layer_name;
  Position previous_token;
  int tokens_before = 0;
  // Of the enclosing messages, outermost first, and the lines (from 0) that opened them.
  std::vector<const Descriptor*> enclosing;
  std::vector<int> opened_at;
};

// Follows braces from the start of the text up to `end`. Protobuf's errors say neither which
// layer they are in nor, for enums, which message.
Surroundings Locate(std::string_view text, const Descriptor* root, const Position& end) {
  struct Frame {
    const Descriptor* message;
    std::string opened_by;
    std::string name;
    int line = 0;
  };
  std::vector<Frame> frames = {{root, "", ""}};
  Surroundings result;
  std::string field;

  ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstError ignored;
  Tokenizer tokenizer(&stream, &ignored);
  tokenizer.set_allow_f_after_float(true);
  tokenizer.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer.set_require_space_after_number(false);
  tokenizer.set_allow_multiline_strings(true);
  bool expects_value = false;
  while (tokenizer.Next()) {
    const Tokenizer::Token& token = tokenizer.current();
    const Position position{token.line, token.column};
    if (!(position < end)) break;
    result.previous_token = position;
    ++result.tokens_before;
    if (token.type == Tokenizer::TYPE_IDENTIFIER && !expects_value) field = token.text;
    if (token.type == Tokenizer::TYPE_STRING && field == "name") {
      Tokenizer::ParseString(token.text, &frames.back().name);
    }
    if (token.text == "{" || token.text == "<") {
      const Descriptor* parent = frames.back().message;
      const FieldDescriptor* descriptor = parent ? parent->FindFieldByName(field) : nullptr;
      frames.push_back({descriptor ? descriptor->message_type() : nullptr, field, "", token.line});
    } else if ((token.text == "}" || token.text == ">") && frames.size() > 1) {
      field = frames.back().opened_by;
      frames.pop_back();
    }
    expects_value = token.text == ":";
  }
  result.message = frames.back().message;
  result.field = field;
  for (const Frame& frame : frames) {
    result.enclosing.push_back(frame.message);
    result.opened_at.push_back(frame.line);
    const bool is_layer = frame.opened_by == "layer" || frame.opened_by == "layers";
    if (is_layer && !frame.name.empty()) result.layer_name = frame.name;
  }
  return result;
}

// The quoted piece of `text` after `prefix`, if `text` holds `prefix`.
std::optional<std::string> QuotedAfter(const std::string& text, const std::string& prefix) {
  const size_t start = text.find(prefix + '"');
  if (start == std::string::npos) return std::nullopt;
  const size_t from = start + prefix.size() + 1;
  const size_t to = text.find('"', from);
  if (to == std::string::npos) return std::nullopt;
  return text.substr(from, to - from);
}

std::string JoinWithCommas(const std::vector<std::string>& names) {
  std::string joined;
  for (const std::string& name : names) joined += (joined.empty() ? "" : ", ") + name;
  return joined;
}

// What a forgotten brace looks like: the field is one of a message further out, as a layer within a
// layer is. Empty when it is not.
std::string SuspectMissingBrace(const Surroundings& around, const std::string& name) {
  for (size_t i = around.enclosing.size() - 1; i-- > 0;) {
    const Descriptor* outer = around.enclosing[i];
    const FieldDescriptor* field = outer != nullptr ? outer->FindFieldByName(name) : nullptr;
    if (field == nullptr) continue;
    return StrCat("; is a '}' missing before it, for the '{' of line ", around.opened_at.back() + 1,
                  "?");
  }
  return "";
}

// A net where a solver should be, or the reverse: the very first field is one of the other's.
std::string SuspectOtherFile(const Surroundings& around, const std::string& name) {
  if (around.tokens_before != 1) return "";
  for (const char* kind : {"NetParameter", "SolverParameter"}) {
    const Descriptor* other = around.message->file()->FindMessageTypeByName(kind);
    if (other == nullptr || other == around.message || !other->FindFieldByName(name)) continue;
    return StrCat("; ", kind, " has one: is this the right file?");
  }
  return "";
}

std::string DescribeUnknownField(const Surroundings& around, const std::string& name) {
  const Descriptor* message = around.message;
  std::vector<std::string> names;
  std::vector<std::string> holders;
  for (int i = 0; i < message->field_count(); ++i) {
    const FieldDescriptor* field = message->field(i);
    names.push_back(field->name());
    const Descriptor* inner = field->message_type();
    if (inner && inner->FindFieldByName(name)) holders.push_back(field->name());
  }
  std::string text = StrCat(message->name(), " has no field '", name, "'");
  if (const std::string brace = SuspectMissingBrace(around, name); !brace.empty()) {
    return text + brace;
  }
  if (const std::string other = SuspectOtherFile(around, name); !other.empty()) return text + other;
  if (const std::string nearest = NearestName(name, names); !nearest.empty()) {
    return StrCat(text, "; did you mean '", nearest, "'?");
  }
  constexpr size_t kShortList = 12;
  if (!holders.empty() && holders.size() <= kShortList) {
    return StrCat(text, "; it belongs inside ", JoinWithCommas(holders));
  }
  if (names.size() <= kShortList) {
    return StrCat(text, "; its fields are ", JoinWithCommas(names));
  }
  return StrCat(text, "; caffe.proto lists its ", names.size(), " fields");
}

std::string DescribeUnknownEnumValue(const FieldDescriptor* field, const std::string& value) {
  const EnumDescriptor* type = field->enum_type();
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  const std::string nearest = NearestName(value, names);
  return StrCat("field '", field->name(), "' of ", field->containing_type()->name(),
                " has no value '", value, "'; ",
                nearest.empty() ? "" : StrCat("did you mean '", nearest, "'? "), "use one of ",
                JoinWithCommas(names));
}

// Our words for protobuf's message; moves `position` to the name that is wrong, because
// protobuf has already read on to the token after it.
std::string Explain(const std::string& message, const Surroundings& around, Position* position) {
  if (const auto name = QuotedAfter(message, "has no field named "); name && around.message) {
    *position = around.previous_token;
    return DescribeUnknownField(around, *name);
  }
  if (const auto value = QuotedAfter(message, "Unknown enumeration value of ")) {
    const auto field_name = QuotedAfter(message, "for field ");
    const FieldDescriptor* field =
        around.message && field_name ? around.message->FindFieldByName(*field_name) : nullptr;
    if (field && field->enum_type()) {
      *position = around.previous_token;
      return DescribeUnknownEnumValue(field, *value);
    }
  }
  std::string text = message;
  if (!text.empty() && text.back() == '.') text.pop_back();
  if (around.message && around.field == "type") {
    if (around.message->name() == "LayerParameter" && text.starts_with("Expected string")) {
      return text + "; inside 'layer' the type is a string, such as type: \"Convolution\"";
    }
    if (around.message->name() == "V1LayerParameter" && text.starts_with("Expected")) {
      return text + "; a string as type needs 'layer { ... }' instead of 'layers { ... }'";
    }
  }
  return text;
}

std::string_view LineAt(std::string_view text, int line) {
  for (; line > 0; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  return text;
}

std::string LocatedError(std::string_view text, const std::string& source_name,
                         const Descriptor* root, const FirstError& error) {
  Position position = error.position();
  if (position.line < 0) {
    return StrCat(source_name, ": ", error.message());
  }
  const Surroundings around = Locate(text, root, position);
  std::string what = Explain(error.message(), around, &position);
  if (!around.layer_name.empty()) what = StrCat("in layer '", around.layer_name, "': ", what);

  // Drawn with tabs expanded.
  std::string drawn;
  for (const char letter : LineAt(text, position.line)) {
    drawn += letter == '\t' ? std::string(8 - drawn.size() % 8, ' ') : std::string(1, letter);
  }
  constexpr size_t kWidth = 100;
  std::string excerpt;
  if (drawn.size() <= kWidth) {
    excerpt = StrCat("\n  ", drawn, "\n  ", std::string(position.column, ' '), "^");
  }
  return StrCat(source_name, ":", position.line + 1, ":",
                ColumnInText(text, position.line, position.column), ": ", what, excerpt);
}

}  // namespace

int ColumnInText(std::string_view text, int line, int column) {
  int characters = 0, width = 0;
  for (const char letter : LineAt(text, line)) {
    if (width >= column) break;
    width = letter == '\t' ? (width / 8 + 1) * 8 : width + 1;
    ++characters;
  }
  return characters + 1;
}

void ParseTextProto(std::string_view text, const std::string& source_name,
                    google::protobuf::Message* message) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // as editors on Windows write it
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Require(text.find('\0') == std::string_view::npos, source_name, ": this is not text (byte ",
          text.find('\0') + 1, " of ", text.size(),
          " is 0); a definition is a prototxt, weights are given separately");
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  if (!parser.Parse(&stream, message)) {
    throw InvalidArgument(LocatedError(text, source_name, message->GetDescriptor(), error));
  }
}

void ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  ParseTextProto(ReadFile(path), path, message);
}

void WriteTextProto(const std::string& path, const google::protobuf::Message& message) {
  std::string text;
  CAFFE_ASSERT(google::protobuf::TextFormat::PrintToString(message, &text));
  WriteFileAtomically(path, text);
}

}  // namespace caffe
