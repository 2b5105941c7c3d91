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
#include "caffe/error.hpp"
#include "caffe/io/atomic_file.hpp"
#include "caffe/io/expand/expand.hpp"
#include "caffe/io/extension_names.hpp"
#include "caffe/io/source_text.hpp"
#include "caffe/io/text_errors.hpp"
#include "caffe/io/text_nesting.hpp"
#include "caffe/io/text_walk.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::ArrayInputStream;
using google::protobuf::io::ErrorCollector;

thread_local bool is_lenient = false;

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

// The offset of the byte at a position.
size_t OffsetOf(std::string_view text, const TextPosition& position) {
  const char* const line = LineOfText(text, position.line).data();
  return static_cast<size_t>(line - text.data()) +
         static_cast<size_t>(ColumnInText(text, position.line, position.column)) - 1;
}

// Start and end of the field whose value ends before `end`, including a separator that follows. Its
// value may be a list.
std::optional<std::pair<size_t, size_t>> FieldBefore(std::string_view text, const Descriptor* root,
                                                     const TextPosition& end) {
  TextPosition previous, name;
  std::string previous_text, text_of_name;
  bool is_in_list = false;
  for (TextWalk walk(text, root); walk.Next(); walk.Enter()) {
    const TextPosition position{walk.token().line, walk.token().column};
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

void ParseTextProto(const SourceText& text, google::protobuf::Message* message) {
  const Descriptor* root = message->GetDescriptor();
  Readable readable;
  std::string_view known = text.text();
  if (is_lenient) {
    readable = WithoutUnknownValues(known, *message);
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
    throw InvalidArgument(Explained(text, root, *complaints.error));
  }
  std::vector<Complaint>& left_out = readable.left_out;
  left_out.insert(left_out.end(), complaints.warnings.begin(), complaints.warnings.end());
  for (const Complaint& warning : left_out) {
    LOG(WARNING) << "left out: " << Explained(text, root, warning);
  }
  LOG_IF(WARNING, !left_out.empty())
      << text.main_file().path << ": " << left_out.size()
      << " fields are left out (--lenient); shapes and "
      << "numbers may be others than those that the file's author had";
}

void ParseTextProto(std::string_view text, const std::string& source_name,
                    google::protobuf::Message* message) {
  ParseTextProto(SourceText(source_name, text), message);
}

bool IsLenientReading() {
  return is_lenient;
}

LenientReading::LenientReading(bool on) : before_(std::exchange(is_lenient, is_lenient || on)) {}

LenientReading::~LenientReading() {
  is_lenient = before_;
}

TextPositions::TextPositions(const SourceText& text, google::protobuf::Message* message)
    : known_(WithoutUnknownValues(text.text(), *message).text),
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

ErrorPlace TextPositions::PlaceOf(const FieldDescriptor* field, int index) const {
  if (!parses_) return {};
  const google::protobuf::TextFormat::ParseLocation start = tree_.GetLocation(field, index);
  if (start.line < 0) return {};
  const int column = bracketed_.OriginalColumn(start.line, start.column);
  return {TextOfPlace(text_.Origin(start.line, column)), text_.ChainAt(start.line, column)};
}

void ReadTextProto(const std::string& path, google::protobuf::Message* message) {
  ParseTextProto(ReadDefinitionText(path, *message->GetDescriptor()), message);
}

void WriteTextProto(const std::string& path, const google::protobuf::Message& message) {
  std::string text;
  CAFFE_ASSERT(google::protobuf::TextFormat::PrintToString(message, &text));
  WriteFileAtomically(path, text);
}

}  // namespace caffe
