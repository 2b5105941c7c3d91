// Errors about the text of a definition, in words that say what to do.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "caffe/io/source_text.hpp"

namespace caffe {

// A position as counted by protobuf: from 0; a tab advances to the next multiple of 8.
struct TextPosition {
  int line = -1;
  int column = 0;
  bool operator<(const TextPosition& other) const {
    return line != other.line ? line < other.line : column < other.column;
  }
};

// A message of protobuf's parser.
struct Complaint {
  TextPosition position;
  std::string message;
};

// Returns "FILE:LINE:COLUMN: in layer 'name': what; did you mean ...?" with the line and a caret
// below it. `root` is the type of the whole text.
std::string Explained(const SourceText& text, const google::protobuf::Descriptor* root,
                      const Complaint& complaint);

}  // namespace caffe
