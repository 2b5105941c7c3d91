// Prototxt: messages as text. Errors name file, line and column and suggest the nearest name.
#pragma once

#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <string>
#include <string_view>

#include "caffe/export.hpp"
#include "caffe/io/extension_names.hpp"

namespace caffe {

// Parses `text` into `message`, replacing its content. Throws InvalidArgument
// "SOURCE:LINE:COLUMN: what; did you mean ...?" with the offending line and a caret below it
// (all 1-based). Only the first error is reported: later ones tend to follow from it.
CAFFE_EXPORT void ParseTextProto(std::string_view text, const std::string& source_name,
                                 google::protobuf::Message* message);

// While one of these lives, this thread's ParseTextProto leaves out fields that the schema does not
// have, and those with a value that their enum does not have, with a warning each that says what
// the error would have said.
class CAFFE_EXPORT LenientReading {
 public:
  explicit LenientReading(bool on = true);
  ~LenientReading();
  LenientReading(const LenientReading&) = delete;
  LenientReading& operator=(const LenientReading&) = delete;

 private:
  const bool before_;
};

// Reads and parses the file at `path`. Throws IoError when it cannot be read.
CAFFE_EXPORT void ReadTextProto(const std::string& path, google::protobuf::Message* message);

// The column, from 1 and in characters, of a position as protobuf counts it: from 0, tabs reach to
// the next multiple of 8.
int ColumnInText(std::string_view text, int line, int column);
// The reverse: protobuf's column of the byte with this number, from 0, in a line, from 0.
int ColumnOfByte(std::string_view text, int line, int byte);

// Where the fields of a text stand that has been read without errors, leniently or not.
class TextPositions {
 public:
  // Parses `text`, which has to outlive this, into `message`.
  TextPositions(std::string_view text, google::protobuf::Message* message);
  bool parses() const { return parses_; }
  // "LINE:COLUMN", from 1, of a field's value number `index` (-1 where it is not repeated); empty
  // when it is not there.
  std::string PlaceOf(const google::protobuf::FieldDescriptor* field, int index) const;

 private:
  const std::string known_;  // without what lenient reading leaves out
  const BracketedText bracketed_;
  const std::string_view text_;
  google::protobuf::TextFormat::ParseInfoTree tree_;
  bool parses_ = false;
};

// Writes `message` as text, atomically.
CAFFE_EXPORT void WriteTextProto(const std::string& path, const google::protobuf::Message& message);

}  // namespace caffe
