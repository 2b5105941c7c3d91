// Prototxts name the options of plug-ins' layers as they name all others, `my_param { ... }`.
// Protobuf wants such extensions in brackets, with their package: `[mine.my_param] { ... }`.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// A text in protobuf's form. The original has to outlive it.
class BracketedText {
 public:
  BracketedText(std::string_view text, const google::protobuf::Descriptor* root);

  const std::string& text() const { return text_; }
  // The column in the original of one in text(), both as protobuf counts: from 0.
  int OriginalColumn(int line, int column) const;

 private:
  struct Change {
    int line, byte;       // in the original, where the name begins
    int bracketed, name;  // bytes of both forms
  };

  const std::string_view original_;
  std::string text_;
  std::vector<Change> changes_;
};

}  // namespace caffe
