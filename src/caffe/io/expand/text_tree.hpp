// The text of a definition as a tree of fields. Unlike protobuf's parser, this one needs no schema
// and reads references such as $width.
#pragma once

#include <google/protobuf/io/tokenizer.h>

#include <string>
#include <string_view>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/io/source_text.hpp"

namespace caffe::expand {

using TokenType = google::protobuf::io::Tokenizer::TokenType;

// Adjacent strings are one token.
struct Token {
  TokenType type;
  std::string text;
  SourcePlace place;
  // In the value of an argument: what the names of blobs begin with where the value was written.
  const std::string* prefix = nullptr;

  bool Is(const char* symbol) const { return text == symbol; }
  bool is_string() const { return type == google::protobuf::io::Tokenizer::TYPE_STRING; }
  bool is_end() const { return type == google::protobuf::io::Tokenizer::TYPE_END; }
};

using Tokens = std::vector<Token>;

struct Field {
  Token name;
  Tokens value;               // a scalar or a list; empty for a message
  std::vector<Field> fields;  // of a message
  bool is_message = false;
};

using Fields = std::vector<Field>;

// A mistake in a definition that has no text yet about the uses that led there.
struct Mistake {
  SourcePlace place;
  std::string what;
};

// Throws a Mistake with the concatenated parts unless `condition` holds.
template <typename... Parts>
void RequireAt(const SourcePlace& place, bool condition, const Parts&... parts) {
  if (!condition) throw Mistake{place, StrCat(parts...)};
}

// The contents of a string token, and a string token with these contents.
std::string Unquoted(const Token& token);
Token Quoted(std::string_view text, const SourcePlace& place);

// The tokens of a text, the last one of type TYPE_END. `at` is the place of all tokens, or null for
// their own places in `file`.
Tokens Tokenize(std::string_view text, const SourceFile& file, const SourcePlace* at = nullptr);

// The fields of a whole text. The last token is of type TYPE_END. Throws Mistake.
Fields ParseFields(const Tokens& tokens);

// The first field with this name; null if there is none.
const Field* Find(const Fields& fields, std::string_view name);

}  // namespace caffe::expand
