#include "caffe/io/text_format.hpp"

#include <glog/logging.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "caffe/core/field_names.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/extension_names.hpp"
#include "caffe/io/text_file.hpp"
#include "caffe/io/text_nesting.hpp"
#include "caffe/io/text_walk.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::ErrorCollector;

thread_local bool is_lenient = false;

// A position as counted by protobuf: from 0; a tab advances to the next multiple of 8.
struct Position {
  int line = -1;
  int column = 0;
  bool operator<(const Position& other) const {
    return line != other.line ? line < other.line : column < other.column;
  }
};

struct Complaint {
  Position position;
  std::string message;
};

// Protobuf's messages about a text: the first error, and the warnings of lenient reading.
class Complaints final : public ErrorCollector {
 public:
  explicit Complaints(const BracketedText* text) : text_(text) {}
  void AddError(int line, int column, const std::string& message) override {
    if (!error) error = At(line, column, message);
  }
  void AddWarning(int line, int column, const std::string& message) override {
    warnings.push_back(At(line, column, message));
  }

  std::optional<Complaint> error;
  std::vector<Complaint> warnings;

 private:
  Complaint At(int line, int column, const std::string& message) const {
    if (text_ != nullptr) column = text_->OriginalColumn(line, column);
    return {{line, column}, message};
  }

  const BracketedText* const text_;  // null: the text is parsed unchanged
};

// The context of a position: the enclosing message, the current field, the layer's name.
struct Surroundings {
  const Descriptor* message = nullptr;
  std::string field;
  std::string layer_name;
  Position previous_token;
  std::string previous_text;
  int tokens_before = 0;
  // The enclosing messages, outermost first, and the lines (from 0) that opened them.
  std::vector<const Descriptor*> enclosing;
  std::vector<int> opened_at;
};

// Follows braces from the start of the text to `end`.
Surroundings Locate(std::string_view text, const Descriptor* root, const Position& end) {
  Surroundings result;
  TextWalk walk(text, root);
  for (; walk.Next(); walk.Enter()) {
    const Position position{walk.token().line, walk.token().column};
    if (!(position < end)) break;
    result.previous_token = position;
    result.previous_text = walk.token().text;
    ++result.tokens_before;
  }
  const std::vector<TextWalk::Frame>& frames = walk.frames();
  result.message = frames.back().message;
  result.field = walk.field();
  for (const TextWalk::Frame& frame : frames) {
    result.enclosing.push_back(frame.message);
    result.opened_at.push_back(frame.line);
    const bool is_layer = frame.opened_by == "layer" || frame.opened_by == "layers";
    if (is_layer && !frame.name.empty()) result.layer_name = frame.name;
  }
  return result;
}

// Returns the quoted part of `text` after `prefix`, if `text` contains `prefix`.
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

// Detects a missing closing brace: the field belongs to an outer message, such as a layer within a
// layer. Empty if it does not.
std::string SuspectMissingBrace(const Surroundings& around, const std::string& name) {
  for (size_t i = around.enclosing.size() - 1; i-- > 0;) {
    const Descriptor* outer = around.enclosing[i];
    const FieldDescriptor* field = FindField(outer, name);
    if (field == nullptr) continue;
    return StrCat("; is a '}' missing before it, for the '{' of line ", around.opened_at.back() + 1,
                  "?");
  }
  return "";
}

// Detects a net instead of a solver, or the reverse: the very first field belongs to the other.
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
  std::vector<const FieldDescriptor*> fields = ExtensionsOf(*message);
  for (int i = 0; i < message->field_count(); ++i) fields.push_back(message->field(i));
  for (const FieldDescriptor* field : fields) {
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

// The value at `position` as written in the text, up to a character that may end a value.
std::string ValueAt(std::string_view text, const Position& position) {
  const std::string_view line = LineAt(text, position.line);
  const std::string_view value =
      line.substr(ColumnInText(text, position.line, position.column) - 1);
  return std::string(value.substr(0, value.find_first_of(" \t;,]}>#")));
}

// Describes the values of a field of simple type; empty for others.
std::string DescribeValues(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number, 0 or more";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text between quotes";
    default:
      return "";
  }
}

// Describes a value of a type that does not match the field's.
std::string DescribeWrongValue(const FieldDescriptor& field, const std::string& value) {
  std::string text =
      StrCat("field '", field.name(), "' of ", field.containing_type()->name(), " takes ",
             DescribeValues(field), ", got ", value.empty() ? "nothing" : value);
  const bool lacks_quotes = field.cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  if (lacks_quotes) text += StrCat("; write ", field.name(), ": \"", value, "\"");
  return text;
}

// Describes text that cannot start a field.
std::string DescribeNoField(const Surroundings& around, const std::string& found) {
  if (found.empty()) {
    return StrCat("the file ends here, but the '{' of line ", around.opened_at.back() + 1,
                  " has no '}'");
  }
  if (found == "}" && around.enclosing.size() == 1) {
    return "this '}' closes nothing; remove it, or look for one too many above";
  }
  if (found == "/") return "a comment begins with #";
  if (found == "<" && around.tokens_before == 0)
    return "this is a web page (HTML); download the file itself, its \"raw\" form";
  const bool is_number = found.find_first_not_of("0123456789") == std::string::npos;
  if (is_number && around.previous_text == ",") {
    return StrCat("the name of a field is expected after the comma, got ", found,
                  "; the fraction of a number comes after a point, as in 0.5");
  }
  return StrCat("the name of a field is expected, got ", found);
}

// Rephrases protobuf's message; moves `position` to the wrong name, because protobuf has already
// read the token after it.
std::string Explain(const std::string& message, std::string_view source, const Surroundings& around,
                    Position* position) {
  if (const auto name = QuotedAfter(message, "has no field named "); name && around.message) {
    *position = around.previous_token;
    return DescribeUnknownField(around, *name);
  }
  if (const auto value = QuotedAfter(message, "Unknown enumeration value of ")) {
    const auto field_name = QuotedAfter(message, "for field ");
    const FieldDescriptor* field = field_name ? FindField(around.message, *field_name) : nullptr;
    if (field && field->enum_type()) {
      *position = around.previous_token;
      return DescribeUnknownEnumValue(field, *value);
    }
  }
  std::string text = message;
  if (!text.empty() && text.back() == '.') text.pop_back();
  if (text.starts_with("Interpreting non ascii codepoint")) {
    const std::string found = ValueAt(source, *position);
    const bool is_quote = found.starts_with("\xe2\x80\x9c") || found.starts_with("\xe2\x80\x9d") ||
                          found.starts_with("\xe2\x80\x98") || found.starts_with("\xe2\x80\x99");
    return is_quote ? "these are typographic quotes; write \" or '"
                    : "only ASCII may stand outside of quotes, got " + found;
  }
  if (around.message && around.field == "type") {
    if (around.message->name() == "LayerParameter" && text.starts_with("Expected string")) {
      return text + "; inside 'layer' the type is a string, such as type: \"Convolution\"";
    }
    if (around.message->name() == "V1LayerParameter" && text.starts_with("Expected")) {
      return text + "; a string as type needs 'layer { ... }' instead of 'layers { ... }'";
    }
  }
  constexpr std::string_view kNoField = "Expected identifier, got: ";
  if (text.starts_with(kNoField)) return DescribeNoField(around, text.substr(kNoField.size()));
  if (text.starts_with("Non-repeated field")) return text + "; keep one";
  if (text.starts_with("String literals") || text == "Unexpected end of string") {
    return text + "; is the closing quote missing?";
  }
  if (text == "Expected \":\", found \"=\"")
    return "a ':' comes between a field and its value, not '='";
  const bool is_wrong_value = text.starts_with("Expected ") || text.starts_with("Integer out of") ||
                              text.starts_with("Invalid value for boolean");
  const FieldDescriptor* field = FindField(around.message, around.field);
  const bool is_at_value = around.previous_text == ":" || around.previous_text == "[" ||
                           around.previous_text == "," || text.starts_with("Invalid");
  if (is_wrong_value && is_at_value && field != nullptr && !DescribeValues(*field).empty()) {
    if (text.starts_with("Invalid")) *position = around.previous_token;
    return DescribeWrongValue(*field, ValueAt(source, *position));
  }
  return text;
}

std::string Located(std::string_view text, const std::string& source_name, const Descriptor* root,
                    const Complaint& complaint) {
  Position position = complaint.position;
  if (position.line < 0) return StrCat(source_name, ": ", complaint.message);
  const Surroundings around = Locate(text, root, position);
  std::string what = Explain(complaint.message, text, around, &position);
  if (!around.layer_name.empty()) what = StrCat("in layer '", around.layer_name, "': ", what);

  // The line with tabs expanded.
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

// The offset of the byte at a position.
size_t OffsetOf(std::string_view text, const Position& position) {
  const char* const line = LineAt(text, position.line).data();
  return static_cast<size_t>(line - text.data()) +
         static_cast<size_t>(ColumnInText(text, position.line, position.column)) - 1;
}

// Start and end of the field whose value ends before `end`, including a separator that follows. Its
// value may be a list.
std::optional<std::pair<size_t, size_t>> FieldBefore(std::string_view text, const Descriptor* root,
                                                     const Position& end) {
  Position previous, name;
  std::string previous_text, text_of_name;
  bool is_in_list = false;
  for (TextWalk walk(text, root); walk.Next(); walk.Enter()) {
    const Position position{walk.token().line, walk.token().column};
    const std::string& token = walk.token().text;
    if (!(position < end)) break;
    if (token == ":") {
      name = previous;
      text_of_name = previous_text;
      is_in_list = false;
    }
    if (token == "[") is_in_list = true;
    previous = position;
    previous_text = token;
  }
  if (name.line < 0 || text_of_name == "]")
    return std::nullopt;  // an extension's name, in brackets
  size_t last = OffsetOf(text, previous) + previous_text.size();
  if (is_in_list) last = std::min(text.find(']', last), text.size() - 1) + 1;
  const size_t next = text.find_first_not_of(" \t\r\n", last);
  const bool is_separated =
      next != std::string_view::npos && (text[next] == ',' || text[next] == ';');
  return std::pair(OffsetOf(text, name), is_separated ? next + 1 : last);
}

// A text without fields that protobuf's parser cannot be told to skip: those with unknown enum
// values. They are replaced by spaces, so that everything else keeps its position.
struct Readable {
  std::string text;
  std::vector<Complaint> left_out;
};

Readable WithoutUnknownValues(std::string_view text, const google::protobuf::Message& kind) {
  Readable result{std::string(text), {}};
  const std::unique_ptr<google::protobuf::Message> scratch(kind.New());
  for (;;) {
    const BracketedText bracketed(result.text, kind.GetDescriptor());
    Complaints complaints(&bracketed);
    google::protobuf::TextFormat::Parser parser;
    parser.SetRecursionLimit(kMostNesting);
    parser.RecordErrorsTo(&complaints);
    parser.AllowUnknownField(true);
    parser.AllowUnknownExtension(true);
    if (parser.ParseFromString(bracketed.text(), scratch.get())) return result;
    if (!complaints.error->message.starts_with("Unknown enumeration value")) return result;
    const auto field = FieldBefore(result.text, kind.GetDescriptor(), complaints.error->position);
    if (!field) return result;
    for (size_t i = field->first; i < field->second; ++i) {
      if (!std::isspace(static_cast<unsigned char>(result.text[i]))) result.text[i] = ' ';
    }
    result.left_out.push_back(*complaints.error);
  }
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

int ColumnOfByte(std::string_view text, int line, int byte) {
  int width = 0;
  for (const char letter : LineAt(text, line).substr(0, static_cast<size_t>(byte))) {
    width = letter == '\t' ? (width / 8 + 1) * 8 : width + 1;
  }
  return width;
}

void ParseTextProto(std::string_view text, const std::string& source_name,
                    google::protobuf::Message* message) {
  text = WithoutByteOrderMark(text, source_name);
  Require(text.find('\0') == std::string_view::npos, source_name, ": this is not text (byte ",
          text.find('\0') + 1, " of ", text.size(),
          " is 0); a definition is a prototxt, weights are given separately");
  const Descriptor* root = message->GetDescriptor();
  Readable readable;
  std::string_view known = text;
  if (is_lenient) {
    readable = WithoutUnknownValues(text, *message);
    known = readable.text;
  }
  std::optional<BracketedText> bracketed;
  if (!ExtensionsOf(*LayerParameter::descriptor()).empty()) bracketed.emplace(known, root);
  Complaints complaints(bracketed ? &*bracketed : nullptr);
  const std::string_view source = bracketed ? std::string_view(bracketed->text()) : known;
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNesting);
  parser.RecordErrorsTo(&complaints);
  parser.AllowUnknownField(is_lenient);
  parser.AllowUnknownExtension(is_lenient);
  ArrayInputStream stream(source.data(), static_cast<int>(source.size()));
  if (!parser.Parse(&stream, message)) {
    CAFFE_ASSERT(complaints.error.has_value());
    throw InvalidArgument(Located(text, source_name, root, *complaints.error));
  }
  std::vector<Complaint>& left_out = readable.left_out;
  left_out.insert(left_out.end(), complaints.warnings.begin(), complaints.warnings.end());
  for (const Complaint& warning : left_out) {
    LOG(WARNING) << "left out: " << Located(text, source_name, root, warning);
  }
  LOG_IF(WARNING, !left_out.empty())
      << source_name << ": " << left_out.size() << " fields are left out (--lenient); shapes and "
      << "numbers may be others than those that the file's author had";
}

LenientReading::LenientReading(bool on) : before_(std::exchange(is_lenient, is_lenient || on)) {}

LenientReading::~LenientReading() {
  is_lenient = before_;
}

TextPositions::TextPositions(std::string_view text, google::protobuf::Message* message)
    : known_(WithoutUnknownValues(text, *message).text),
      bracketed_(known_, message->GetDescriptor()),
      text_(text) {
  Complaints passed_over(nullptr);  // reported when the text was first read
  google::protobuf::TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNesting);
  parser.RecordErrorsTo(&passed_over);
  parser.WriteLocationsTo(&tree_);
  parser.AllowUnknownField(true);
  parser.AllowUnknownExtension(true);
  parses_ = parser.ParseFromString(bracketed_.text(), message);
}

std::string TextPositions::PlaceOf(const FieldDescriptor* field, int index) const {
  if (!parses_) return "";
  const google::protobuf::TextFormat::ParseLocation start = tree_.GetLocation(field, index);
  if (start.line < 0) return "";
  const int column = bracketed_.OriginalColumn(start.line, start.column);
  return StrCat(start.line + 1, ":", ColumnInText(text_, start.line, column));
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
