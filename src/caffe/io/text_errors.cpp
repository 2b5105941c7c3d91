#include "caffe/io/text_errors.hpp"

#include <google/protobuf/descriptor.h>

#include <optional>
#include <vector>

#include "caffe/core/field_names.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_walk.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

// The context of a position: the enclosing message, the current field, the layer's name.
struct Surroundings {
  const Descriptor* message = nullptr;
  std::string field;
  std::string layer_name;
  TextPosition previous_token;
  std::string previous_text;
  int tokens_before = 0;
  // The enclosing messages, outermost first, and the lines (from 0) that opened them.
  std::vector<const Descriptor*> enclosing;
  std::vector<int> opened_at;
};

// Follows braces from the start of the text to `end`.
Surroundings Locate(const SourceText& text, const Descriptor* root, const TextPosition& end) {
  Surroundings result;
  TextWalk walk(text.text(), root);
  for (; walk.Next(); walk.Enter()) {
    const TextPosition position{walk.token().line, walk.token().column};
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
    result.opened_at.push_back(text.Origin(frame.line, frame.column).line);
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
  std::vector<std::string> candidates = names;
  if (message == NetParameter::descriptor())  // and those of short nets
    candidates.insert(candidates.end(), {"block", "defaults", "include", "use"});
  if (const std::string nearest = NearestName(name, candidates); !nearest.empty()) {
    return StrCat(text, "; did you mean '", nearest, "'?");
  }
  constexpr size_t kShortList = 12;
  if (!holders.empty() && holders.size() <= kShortList) {
    return StrCat(text, "; it belongs inside ", JoinByComma(holders));
  }
  if (names.size() <= kShortList) {
    return StrCat(text, "; its fields are ", JoinByComma(names));
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
                JoinByComma(names));
}

// The value at `position` as written in the text, up to a character that may end a value.
std::string ValueAt(std::string_view text, const TextPosition& position) {
  const std::string_view line = LineOfText(text, position.line);
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
                    TextPosition* position) {
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

}  // namespace

std::string Explained(const SourceText& text, const Descriptor* root, const Complaint& complaint) {
  TextPosition position = complaint.position;
  if (position.line < 0) return StrCat(text.main_file().path, ": ", complaint.message);
  const Surroundings around = Locate(text, root, position);
  std::string what = Explain(complaint.message, text.text(), around, &position);
  if (!around.layer_name.empty()) what = StrCat("in layer '", around.layer_name, "': ", what);
  what += text.ChainAt(position.line, position.column);
  return ErrorAt(text.Origin(position.line, position.column), what);
}

}  // namespace caffe
