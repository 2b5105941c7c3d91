#include "caffe/io/overrides.hpp"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "caffe/core/field_names.hpp"
#include "caffe/core/nearest_name.hpp"
#include "caffe/core/split.hpp"
#include "caffe/error.hpp"
#include "caffe/io/text_nesting.hpp"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::TextFormat;

// A segment such as "layer[conv1]".
struct Segment {
  std::string field;
  std::optional<std::string> key;
};

struct Assignment {
  std::vector<Segment> path;
  std::string value;
};

// Names in brackets may contain dots and equals signs.
Assignment Parse(const std::string& text) {
  Assignment result;
  size_t at = 0;
  while (true) {
    const size_t end = std::min(text.find_first_of(".[=", at), text.size());
    Segment segment{text.substr(at, end - at), {}};
    at = end;
    if (at < text.size() && text[at] == '[') {
      const size_t close = text.find(']', at);
      Require(close != std::string::npos, "the '[' has no ']'");
      segment.key = text.substr(at + 1, close - at - 1);
      at = close + 1;
    }
    Require(!segment.field.empty() && at < text.size() && (text[at] == '.' || text[at] == '='),
            "this is not FIELD=VALUE or FIELD[NAME].FIELD=VALUE");
    result.path.push_back(std::move(segment));
    if (text[at++] == '=') break;
  }
  result.value = text.substr(at);
  return result;
}

std::string Suggest(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = NearestName(name, known);
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

const FieldDescriptor& FieldNamed(const Descriptor& type, const std::string& name) {
  if (const FieldDescriptor* field = FindField(&type, name)) return *field;
  std::vector<std::string> known;
  for (int i = 0; i < type.field_count(); ++i) known.push_back(type.field(i)->name());
  throw InvalidArgument(StrCat(type.name(), " has no field '", name, "'", Suggest(name, known)));
}

std::optional<int> ParseIndex(const std::string& text) {
  int index = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || rest != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

int CheckedIndex(const FieldDescriptor& field, int index, int size) {
  Require(index < size, "'", field.name(), "' has ", size, " elements, counted from 0; ", index,
          " is beyond them");
  return index;
}

std::string NameOf(const Message& message) {
  const FieldDescriptor* name = message.GetDescriptor()->FindFieldByName("name");
  const bool is_text = name != nullptr && name->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
                       !name->is_repeated();
  return is_text ? message.GetReflection()->GetString(message, name) : "";
}

// Returns the index of the element of a repeated message that `key` selects by index or name.
int FindElement(const Message& message, const FieldDescriptor& field, const std::string& key) {
  const int size = message.GetReflection()->FieldSize(message, &field);
  if (const std::optional<int> index = ParseIndex(key)) return CheckedIndex(field, *index, size);
  std::vector<std::string> names;
  std::vector<int> found;
  for (int i = 0; i < size; ++i) {
    names.push_back(NameOf(message.GetReflection()->GetRepeatedMessage(message, &field, i)));
    if (names.back() == key) found.push_back(i);
  }
  Require(!found.empty(), "no '", field.name(), "' has the name '", key, "'", Suggest(key, names));
  Require(found.size() == 1, found.size(), " of '", field.name(), "' have the name '", key,
          "'; give a number: ", field.name(), "[", found[0], "], ", field.name(), "[",
          found.size() > 1 ? found[1] : 0, "], ...");
  return found[0];
}

Message* Enter(const Segment& segment, Message* message) {
  const FieldDescriptor& field = FieldNamed(*message->GetDescriptor(), segment.field);
  Require(field.message_type() != nullptr, "'", field.name(), "' is of type ", field.type_name(),
          " and has no fields");
  if (!field.is_repeated()) {
    Require(!segment.key, "'", field.name(), "' is not a list; leave out [",
            segment.key.value_or(""), "]");
    return message->GetReflection()->MutableMessage(message, &field);
  }
  Require(segment.key.has_value(), "'", field.name(),
          "' is a list; give an element's number or name: ", field.name(), "[0]");
  return message->GetReflection()->MutableRepeatedMessage(
      message, &field, FindElement(*message, field, *segment.key));
}

// The values as written in a file.
std::vector<std::string> Values(const Message& message, const FieldDescriptor& field) {
  const auto* reflection = message.GetReflection();
  const int size = field.is_repeated() ? reflection->FieldSize(message, &field)
                                       : reflection->HasField(message, &field);
  std::vector<std::string> values(size);
  for (int i = 0; i < size; ++i) {
    TextFormat::PrintFieldValueToString(message, &field, field.is_repeated() ? i : -1, &values[i]);
  }
  return values;
}

std::string Describe(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text.empty() ? "(not set)" : text;
}

// `value` is a name in any case, or its number, as in Python.
std::string EnumValue(const EnumDescriptor& type, const std::string& value) {
  if (const std::optional<int> number = ParseIndex(value)) {
    if (const auto* found = type.FindValueByNumber(*number)) return found->name();
  }
  std::vector<std::string> names;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = type.value(i)->name();
    const bool is_equal = std::equal(
        name.begin(), name.end(), value.begin(), value.end(),
        [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
    if (is_equal) return name;
    names.push_back(name);
  }
  throw InvalidArgument(StrCat("its values are ", Describe(names), Suggest(value, names)));
}

// Returns `value` as it would be written in a file. Throws InvalidArgument with the allowed values.
std::string Literal(const FieldDescriptor& field, const std::string& value) {
  if (field.enum_type() != nullptr) return EnumValue(*field.enum_type(), value);
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    std::ostringstream quoted;
    quoted << std::quoted(value);
    return std::move(quoted).str();
  }
  const bool is_word = !value.empty() && std::all_of(value.begin(), value.end(), [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) || letter == '.' || letter == '-' ||
           letter == '+';
  });
  Require(is_word, "give one ", field.type_name());
  return value;
}

// Replaces the field's values. Throws InvalidArgument if a value has another type.
void SetValues(const FieldDescriptor& field, const std::vector<std::string>& literals,
               Message* message) {
  class Reason final : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int, int, const std::string& what) override {
      if (text.empty()) text = what;
    }
    std::string text;
  };
  std::string text;
  for (const std::string& literal : literals) text += field.name() + ": " + literal + "\n";
  const std::unique_ptr<Message> parsed(message->New());
  Reason reason;
  TextFormat::Parser parser;
  parser.SetRecursionLimit(kMostNesting);
  parser.AllowPartialMessage(true);
  parser.RecordErrorsTo(&reason);
  Require(parser.ParseFromString(text, parsed.get()), reason.text);
  message->GetReflection()->ClearField(message, &field);
  message->MergeFrom(*parsed);
}

std::vector<std::string> Literals(const FieldDescriptor& field, const std::string& value) {
  const std::vector<std::string> parts =
      field.is_repeated() ? SplitByComma(value) : std::vector<std::string>{value};
  std::vector<std::string> literals;
  for (const std::string& part : parts) literals.push_back(Literal(field, part));
  return literals;
}

// Returns the literals of the field after setting `value`: for one element only, if there is a key.
std::vector<std::string> NewLiterals(const FieldDescriptor& field, const Segment& segment,
                                     const std::string& value, std::vector<std::string> current) {
  if (!segment.key) return Literals(field, value);
  const std::optional<int> index = ParseIndex(*segment.key);
  Require(index.has_value(), "'", *segment.key, "' is not a number");
  current[CheckedIndex(field, *index, static_cast<int>(current.size()))] = Literal(field, value);
  return current;
}

// If one of the two fields for the length of training is set, the other is cleared.
void ClearOther(const std::string& field, Message* message) {
  for (const auto& [one, other] : {std::pair{"max_iter", "max_epoch"}, {"max_epoch", "max_iter"}}) {
    const FieldDescriptor* const cleared = message->GetDescriptor()->FindFieldByName(other);
    if (field == one && cleared != nullptr) message->GetReflection()->ClearField(message, cleared);
  }
}

// Assigns the last field of a path. Returns "old -> new".
std::string Assign(const Segment& segment, const std::string& value, Message* message) {
  const FieldDescriptor& field = FieldNamed(*message->GetDescriptor(), segment.field);
  Require(field.message_type() == nullptr, "'", field.name(), "' is a ",
          field.message_type() ? field.message_type()->name() : "",
          "; set one of its fields: ", field.name(), ".FIELD=", value);
  Require(!segment.key || field.is_repeated(), "'", field.name(), "' is not a list");
  const std::vector<std::string> before = Values(*message, field);
  WithContext(StrCat("'", field.name(), "' is of type ", field.type_name(), ", now ",
                     Describe(before), ", and cannot be '", value, "'"),
              [&] { SetValues(field, NewLiterals(field, segment, value, before), message); });
  ClearOther(field.name(), message);
  return Describe(before) + " -> " + Describe(Values(*message, field));
}

}  // namespace

std::string ApplyOverride(const std::string& text, Message* message) {
  return WithContext("override '" + text + "'", [&] {
    const Assignment assignment = Parse(text);
    const std::unique_ptr<Message> changed(message->New());
    changed->CopyFrom(*message);
    Message* inner = changed.get();
    for (size_t i = 0; i + 1 < assignment.path.size(); ++i)
      inner = Enter(assignment.path[i], inner);
    const std::string change = Assign(assignment.path.back(), assignment.value, inner);
    message->GetReflection()->Swap(message, changed.get());
    return text.substr(0, text.size() - assignment.value.size() - 1) + ": " + change;
  });
}

}  // namespace caffe
