// Prototxt: messages as text. Errors name file, line and column and suggest the nearest name.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

namespace caffe {

// Parses `text` into `message`, replacing its content. Throws InvalidArgument
// "SOURCE:LINE:COLUMN: what; did you mean ...?" with the offending line and a caret below it
// (all 1-based). Only the first error is reported: later ones tend to follow from it.
void ParseTextProto(std::string_view text, const std::string& source_name,
                    google::protobuf::Message* message);

// Reads and parses the file at `path`. Throws IoError when it cannot be read.
void ReadTextProto(const std::string& path, google::protobuf::Message* message);

// The column, from 1 and in characters, of a position as protobuf counts it: from 0, tabs reach to
// the next multiple of 8.
int ColumnInText(std::string_view text, int line, int column);

// Writes `message` as text, atomically.
void WriteTextProto(const std::string& path, const google::protobuf::Message& message);

}  // namespace caffe
