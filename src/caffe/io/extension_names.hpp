// Converts options of plug-in layers. In prototxts they are written like all others, `my_param {
// ... }`; protobuf requires brackets and the package for such extensions: `[mine.my_param] { ...
// }`.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// A text in protobuf's form. The original must outlive it.
class BracketedText {
 public:
  BracketedText(std::string_view text, const google::protobuf::Descriptor* root);

  const std::string& text() const { return text_; }
  // Converts a column of text() to that of the original; both count from 0, as protobuf does.
  int OriginalColumn(int line, int column) const;

 private:
  struct Change {
    int line, byte;       // start of the name in the original
    int bracketed, name;  // sizes of both forms in bytes
  };

  const std::string_view original_;
  std::string text_;
  std::vector<Change> changes_;
};

}  // namespace caffe
