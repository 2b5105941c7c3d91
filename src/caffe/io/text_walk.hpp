// Iterates over the tokens of a prototxt and tracks the enclosing messages.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// Also works on invalid text, because protobuf's errors name neither the layer nor, for enums, the
// message.
class TextWalk {
 public:
  // An open message.
  struct Frame {
    const google::protobuf::Descriptor* message;  // null within unknown fields
    std::string opened_by;                        // the field
    std::string name;                             // the value of its field `name` so far
    int line = 0, column = 0;                     // place of its brace, from 0
  };

  // `text` must outlive this object. `root` is the type of the whole text.
  TextWalk(std::string_view text, const google::protobuf::Descriptor* root);

  // Advances to the next token; false at the end.
  bool Next();
  const google::protobuf::io::Tokenizer::Token& token() const { return tokenizer_.current(); }
  // Updates the frames with the token; call it once for each token that is processed.
  void Enter();
  // True if the token is a field's name, not a value.
  bool is_field_name() const;
  // The most recently named field.
  const std::string& field() const { return field_; }
  // Outermost first.
  const std::vector<Frame>& frames() const { return frames_; }

 private:
  class Silent final : public google::protobuf::io::ErrorCollector {
   public:
    void AddError(int, int, const std::string&) override {}
  };

  Silent silent_;
  google::protobuf::io::ArrayInputStream stream_;
  mutable google::protobuf::io::Tokenizer tokenizer_;  // current() is not const in protobuf 3
  std::vector<Frame> frames_;
  std::string field_;
  bool expects_value_ = false;
};

}  // namespace caffe
