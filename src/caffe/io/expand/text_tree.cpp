#include "caffe/io/expand/text_tree.hpp"

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <optional>
#include <set>

#include "caffe/io/text_nesting.hpp"

namespace caffe::expand {
namespace {

using google::protobuf::io::Tokenizer;

class FirstTokenError final : public google::protobuf::io::ErrorCollector {
 public:
  explicit FirstTokenError(const SourceFile& file) : file_(file) {}
  void AddError(int line, int column, const std::string& message) override {
    std::string what = message;
    if (!what.empty() && what.back() == '.') what.pop_back();
    if (what.starts_with("String literals") || what == "Unexpected end of string")
      what += "; is the closing quote missing?";
    if (what.starts_with("Interpreting non ascii")) what = "only ASCII may stand outside of quotes";
    if (!first) first = Mistake{{&file_, line, column}, what};
  }

  std::optional<Mistake> first;

 private:
  const SourceFile& file_;
};

// Reads fields by recursive descent.
class TreeReader {
 public:
  explicit TreeReader(const Tokens& tokens) : tokens_(tokens) {}

  // The fields up to the end of the text, or to the '}' of `opened`.
  Fields Read(const Field* opened, const Token* brace) {
    RequireAt(Now().place, ++depth_ <= kMostNesting, "messages are nested more than ", kMostNesting,
              " deep");
    const std::string closing = brace == nullptr ? "" : brace->Is("<") ? ">" : "}";
    Fields fields;
    while (!(Now().is_end() || (brace != nullptr && Now().Is(closing.c_str())))) {
      RequireOutsideOfLayer(opened, brace);
      fields.push_back(ReadField());
    }
    RequireAt(Now().place, brace == nullptr || !Now().is_end(),
              "the file ends here, but the '{' of line ",
              brace == nullptr ? 0 : brace->place.line + 1, " has no '", closing, "'");
    --depth_;
    return fields;
  }

 private:
  const Token& Now() const { return tokens_[at_]; }
  Token Take() { return tokens_[Now().is_end() ? at_ : at_++]; }

  // A forgotten brace is found where the next layer begins, not at the end of the file.
  void RequireOutsideOfLayer(const Field* opened, const Token* brace) const {
    static const std::set<std::string> kOutside = {"layer", "block", "use", "defaults"};
    if (opened == nullptr || (opened->name.text != "layer" && opened->name.text != "use")) return;
    const bool is_message = tokens_[at_ + 1].Is("{");
    RequireAt(Now().place, !is_message || !kOutside.contains(Now().text), "'", opened->name.text,
              "' has no field '", Now().text, "'; is a '}' missing before it, for the '{' of line ",
              brace->place.line + 1, "?");
  }

  Field ReadField() {
    Field field{TakeName(), {}, {}, false};
    const bool has_colon = Now().Is(":");
    if (has_colon) Take();
    if (Now().Is("{") || Now().Is("<")) {
      const Token brace = Take();
      field.is_message = true;
      field.fields = Read(&field, &brace);
      Take();
    } else {
      RequireAt(Now().place, has_colon, "a ':' or a '{' is expected after '", field.name.text,
                "', got ", Shown(Now()));
      TakeValue(&field.value);
    }
    if (Now().Is(",") || Now().Is(";")) Take();
    return field;
  }

  Token TakeName() {
    if (Now().type == Tokenizer::TYPE_IDENTIFIER) return Take();
    RequireAt(Now().place, !Now().Is("}"),
              "this '}' closes nothing; remove it, or look for one too many above");
    RequireAt(Now().place, Now().Is("["), "the name of a field is expected, got ", Shown(Now()),
              Now().Is("/") ? "; a comment begins with #" : "");
    Token name = Take();  // of an extension
    while (!Now().is_end() && !name.text.ends_with("]")) name.text += Take().text;
    return name;
  }

  void TakeValue(Tokens* value) {
    const SourcePlace start = Now().place;
    if (Now().Is("[")) {
      TakeBalanced("[", "]", value);
      return;
    }
    if (Now().Is("-")) value->push_back(Take());
    if (Now().Is("$")) {
      value->push_back(Take());
      if (Now().Is("(")) {
        TakeBalanced("(", ")", value);
        return;
      }
      RequireAt(Now().place, Now().type == Tokenizer::TYPE_IDENTIFIER,
                "the name of an argument or '(' is expected after '$', got ", Shown(Now()),
                "; write $width, $(width * 2), and between quotes ${width}");
    }
    const bool is_value = Now().type != Tokenizer::TYPE_SYMBOL && !Now().is_end();
    RequireAt(start, is_value, "a value is expected, got ", Shown(Now()));
    value->push_back(Take());
  }

  // A list or an expression: up to the bracket that closes the next one.
  void TakeBalanced(const char* open, const char* close, Tokens* value) {
    const Token first = Now();
    int depth = 0;
    do {
      RequireAt(Now().place, !Now().is_end(), "the file ends here, but the '", open, "' of line ",
                first.place.line + 1, " has no '", close, "'");
      if (Now().Is(open)) ++depth;
      if (Now().Is(close)) --depth;
      value->push_back(Take());
    } while (depth > 0);
  }

  static std::string Shown(const Token& token) {
    return token.is_end() ? "the end of the file" : token.text;
  }

  const Tokens& tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string Unquoted(const Token& token) {
  std::string text;
  Tokenizer::ParseString(token.text, &text);
  return text;
}

Token Quoted(std::string_view text, const SourcePlace& place) {
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '"' || letter == '\\') quoted += '\\';
    if (byte >= ' ' && byte != 127) {
      quoted += letter;
    } else {
      for (const int shift : {-1, 6, 3, 0})
        quoted += shift < 0 ? '\\' : static_cast<char>('0' + (byte >> shift & 7));
    }
  }
  return {Tokenizer::TYPE_STRING, quoted + "\"", place};
}

Tokens Tokenize(std::string_view text, const SourceFile& file, const SourcePlace* at) {
  google::protobuf::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  FirstTokenError errors(file);
  Tokens tokens;
  Tokenizer tokenizer(&stream, &errors);
  tokenizer.set_allow_f_after_float(true);
  tokenizer.set_comment_style(Tokenizer::SH_COMMENT_STYLE);
  tokenizer.set_require_space_after_number(false);
  tokenizer.set_allow_multiline_strings(false);
  for (bool is_last = false; !is_last;) {
    is_last = !tokenizer.Next();
    if (errors.first) throw Mistake(*errors.first);
    const Tokenizer::Token& now = tokenizer.current();
    const SourcePlace place = at != nullptr ? *at : SourcePlace{&file, now.line, now.column};
    if (now.type == Tokenizer::TYPE_STRING && !tokens.empty() && tokens.back().is_string()) {
      const Token both{now.type, now.text, place};
      tokens.back() = Quoted(Unquoted(tokens.back()) + Unquoted(both), tokens.back().place);
    } else {
      tokens.push_back({now.type, now.text, place});
    }
  }
  return tokens;
}

Fields ParseFields(const Tokens& tokens) {
  return TreeReader(tokens).Read(nullptr, nullptr);
}

const Field* Find(const Fields& fields, std::string_view name) {
  for (const Field& field : fields) {
    if (field.name.text == name) return &field;
  }
  return nullptr;
}

}  // namespace caffe::expand
