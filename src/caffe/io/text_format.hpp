// Prototxt: messages as text. Errors name file, line and column and suggest the nearest name.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/io/extension_names.hpp"
#include "caffe/io/source_text.hpp"
#include "caffe/io/with_position.hpp"

namespace caffe {

// Parses `text` into `message`, replacing its contents. Throws InvalidArgument "SOURCE:LINE:COLUMN:
// what; did you mean ...?" with the offending line and a caret below it (lines and columns count
// from 1). Reports only the first error, because later ones are often consequences of it.
CAFFE_EXPORT void ParseTextProto(std::string_view text, const std::string& source_name,
                                 google::protobuf::Message* message);
// The same for a text that may be expanded: errors name the file and the place in it.
void ParseTextProto(const SourceText& text, google::protobuf::Message* message);

// While an instance exists, this thread's ParseTextProto skips fields that the schema does not have
// and those with unknown enum values. Each is logged as a warning with the text of the error.
class CAFFE_EXPORT LenientReading {
 public:
  explicit LenientReading(bool on = true);
  ~LenientReading();
  LenientReading(const LenientReading&) = delete;
  LenientReading& operator=(const LenientReading&) = delete;

 private:
  const bool before_;
};

// True while an instance of LenientReading exists in this thread.
bool IsLenientReading();

// Reads and parses the file at `path`; nets and solvers are expanded (docs/short_nets.md). Throws
// IoError if it cannot be read.
CAFFE_EXPORT void ReadTextProto(const std::string& path, google::protobuf::Message* message);

// Positions of the fields of a text that was read, leniently or not, without errors.
class TextPositions {
 public:
  // Parses `text`, which must outlive this object, into `message`.
  TextPositions(const SourceText& text, google::protobuf::Message* message);
  bool parses() const { return parses_; }
  // Returns the place of value `index` of a field (-1 if it is not repeated); empty if it is not
  // set.
  ErrorPlace PlaceOf(const google::protobuf::FieldDescriptor* field, int index) const;

 private:
  const std::string known_;  // without the fields that lenient reading skips
  const BracketedText bracketed_;
  const SourceText& text_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
  bool parses_ = false;
};

// Writes `message` as text, atomically.
CAFFE_EXPORT void WriteTextProto(const std::string& path, const google::protobuf::Message& message);

}  // namespace caffe
