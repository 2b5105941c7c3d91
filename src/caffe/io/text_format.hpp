// Prototxt: messages as text. Errors name file, line and column and suggest the nearest name.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/io/extension_names.hpp"

namespace caffe {

// Parses `text` into `message`, replacing its contents. Throws InvalidArgument "SOURCE:LINE:COLUMN:
// what; did you mean ...?" with the offending line and a caret below it (lines and columns count
// from 1). Reports only the first error, because later ones are often consequences of it.
CAFFE_EXPORT void ParseTextProto(std::string_view text, const std::string& source_name,
                                 google::protobuf::Message* message);

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

// Reads and parses the file at `path`. Throws IoError if it cannot be read.
CAFFE_EXPORT void ReadTextProto(const std::string& path, google::protobuf::Message* message);

// Converts a column as counted by protobuf (from 0; a tab advances to the next multiple of 8) to
// one from 1 in characters.
int ColumnInText(std::string_view text, int line, int column);
// The reverse: protobuf's column of byte number `byte`, from 0, in line `line`, from 0.
int ColumnOfByte(std::string_view text, int line, int byte);

// Positions of the fields of a text that was read, leniently or not, without errors.
class TextPositions {
 public:
  // Parses `text`, which must outlive this object, into `message`.
  TextPositions(std::string_view text, google::protobuf::Message* message);
  bool parses() const { return parses_; }
  // Returns "LINE:COLUMN", from 1, of value `index` of a field (-1 if it is not repeated); empty if
  // it is not set.
  std::string PlaceOf(const google::protobuf::FieldDescriptor* field, int index) const;

 private:
  const std::string known_;  // without the fields that lenient reading skips
  const BracketedText bracketed_;
  const std::string_view text_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
  bool parses_ = false;
};

// Writes `message` as text, atomically.
CAFFE_EXPORT void WriteTextProto(const std::string& path, const google::protobuf::Message& message);

}  // namespace caffe
