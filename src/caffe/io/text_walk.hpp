// A walk over the tokens of a prototxt that knows in which message each stands.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <string>
#include <string_view>
#include <vector>

namespace caffe {

// Wrong text is walked as well: protobuf's errors say neither which layer they are in nor, for
// enums, which message.
class TextWalk {
 public:
  // A message that has been opened and not yet closed.
  struct Frame {
    const google::protobuf::Descriptor* message;  // null within unknown fields
    std::string opened_by;                        // the field
    std::string name;                             // the value of its field `name` so far
    int line = 0;                                 // from 0, of its brace
  };

  // `text` has to outlive this. `root` is the message that the whole text is.
  TextWalk(std::string_view text, const google::protobuf::Descriptor* root);

  // Goes to the next token; false at the end.
  bool Next();
  const google::protobuf::io::Tokenizer::Token& token() const { return tokenizer_.current(); }
  // Updates the frames by the token: called once for each token that belongs to the walk.
  void Enter();
  // Whether the token names a field, not a value.
  bool is_field_name() const;
  // The field last named.
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
