// Prototxts name the options of plug-ins' layers as they name all others, `my_param { ... }`.
// Protobuf wants such extensions in brackets, with their package: `[mine.my_param] { ... }`.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// A text in protobuf's form.
class BracketedText {
 public:
  BracketedText(std::string_view text, const google::protobuf::Descriptor* root);

  const std::string& text() const { return text_; }
  // The column in the original of one in text(), both as protobuf counts: from 0.
  int OriginalColumn(int line, int column) const;

 private:
  struct Change {
    int line, column;  // in the original, where the name begins
    int growth;        // by how much it became longer
  };

  std::string text_;
  std::vector<Change> changes_;
};

}  // namespace caffe
