#include "caffe/io/expand/scope.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "caffe/core/nearest_name.hpp"

namespace caffe::expand {
namespace {

using google::protobuf::io::Tokenizer;

constexpr size_t kMostBytesOfValue = 1 << 16;

bool IsLetterOfName(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// Splits a string at its references. `text` is called with what stands between them, `name` with
// the name of $name and ${name}, `expression` with the position of the '(' of $(...), and returns
// the position after its ')'. "$$" is a '$'.
template <typename OnText, typename OnName, typename OnExpression>
void SplitReferences(const Token& token, const std::string& string, OnText&& text, OnName&& name,
                     OnExpression&& expression) {
  for (size_t at = 0; at < string.size();) {
    const size_t next = std::min(string.find('$', at), string.size());
    text(string.substr(at, next - at));
    at = next + 1;
    if (next == string.size()) break;
    const char kind = at < string.size() ? string[at] : ' ';
    if (kind == '$') {
      text("$");
      ++at;
    } else if (kind == '(') {
      at = expression(at);
    } else {
      const size_t begin = kind == '{' ? at + 1 : at;
      size_t end = begin;
      while (end < string.size() && IsLetterOfName(string[end])) ++end;
      const bool is_closed = kind != '{' || (end < string.size() && string[end] == '}');
      RequireAt(token.place, end > begin && is_closed, "the '$' in ", token.text,
                " is followed by no name; write $width or ${width}, and $$ for the character $");
      name(string.substr(begin, end - begin));
      at = kind == '{' ? end + 1 : end;
    }
  }
}

std::string Joined(const Tokens& tokens) {
  if (tokens.size() == 1 && tokens[0].is_string()) return Unquoted(tokens[0]);
  std::string joined;
  for (const Token& token : tokens) joined += token.text;
  return joined;
}

const std::string kOfNet;

// Gives the prefix to the tokens that have none yet.
Tokens WithPrefix(Tokens tokens, const std::string& prefix) {
  for (Token& token : tokens) {
    if (token.prefix == nullptr) token.prefix = &prefix;
  }
  return tokens;
}

// The complete name of what is called `text` where names have this prefix. Outside of blocks,
// "/data" is a name like any other.
std::string NameIn(const std::string& prefix, const std::string& text) {
  return !prefix.empty() && text.starts_with("/") ? text.substr(1) : prefix + text;
}

}  // namespace

void RequireShort(const Tokens& tokens, const SourcePlace& place) {
  size_t bytes = 0;
  for (const Token& token : tokens) bytes += token.text.size();
  RequireAt(place, bytes <= kMostBytesOfValue, "this value has ", bytes,
            " bytes with its arguments; at most ", kMostBytesOfValue, " are possible");
}

int NumberOfBlob(const std::string& name, const std::string& kind) {
  if (name == kind) return 1;
  if (!name.starts_with(kind)) return 0;
  int number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kind.size(), end, number);
  const bool is_number = error == std::errc() && rest == end && number >= 2;
  return is_number && name == StrCat(kind, number) ? number : 0;
}

int HighestBlob(const Fields& fields, const std::string& kind) {
  int highest = 0;
  const auto count = [&](const std::string& name) {
    highest = std::max(highest, NumberOfBlob(name, kind));
  };
  for (const Field& field : fields) {
    if (field.is_message) highest = std::max(highest, HighestBlob(field.fields, kind));
    for (size_t i = 0; i < field.value.size(); ++i) {
      const Token& token = field.value[i];
      if (i > 0 && field.value[i - 1].Is("$")) count(token.text);
      if (!token.is_string()) continue;
      SplitReferences(
          token, Unquoted(token), [](const std::string&) {}, count,
          [](size_t at) { return at + 1; });
    }
  }
  return highest;
}

Tokens Scope::ValueOf(const Token& name) const {
  RequireAt(name.place, block != nullptr, "$", name.text,
            " stands outside of a block, and only blocks have arguments; write the value");
  if (name.text == "index") return NumberTokens(index, name.place);
  if (const auto found = arguments.find(name.text); found != arguments.end()) return found->second;
  for (const auto* blobs : {&bottoms, &tops}) {
    const bool is_in = blobs == &bottoms;
    const auto number = static_cast<size_t>(NumberOfBlob(name.text, is_in ? "in" : "out"));
    if (number == 0) continue;
    // One that is read only in a default or an expression does not count for the use.
    RequireAt(name.place, number <= blobs->size(), "there is no $", name.text, ": block '",
              block->name, "' has ", blobs->size(), is_in ? " bottoms" : " tops");
    return WithPrefix({Quoted((*blobs)[number - 1], name.place)}, kOfNet);
  }
  std::vector<std::string> known = {"in", "out", "index"};
  std::string listed;
  for (const Block::Argument& argument : block->arguments) {
    RequireAt(name.place, argument.name.text != name.text, "$", name.text,
              " has no value here, because argument '", name.text, "' comes later; put it first");
    known.push_back(argument.name.text);
    listed += "$" + argument.name.text + ", ";
  }
  const std::string near = NearestName(name.text, known);
  throw Mistake{name.place, StrCat("there is no $", name.text, " in block '", block->name, "'; ",
                                   near.empty() ? "" : StrCat("did you mean $", near, "? "),
                                   "it knows ", listed, "$in, $out, $index")};
}

std::string Scope::SubstituteText(const Token& string) const {
  const std::string before = Unquoted(string);
  if (block == nullptr || before.find('$') == std::string::npos) return before;
  std::string after;
  const auto lookup = [&](const Token& name) { return ValueOf(name); };
  const auto grow = [&](const std::string& text) {
    after += text;
    RequireShort({{Tokenizer::TYPE_STRING, after, string.place}}, string.place);
  };
  SplitReferences(
      string, before, grow,
      [&](const std::string& name) {
        grow(Joined(ValueOf({Tokenizer::TYPE_IDENTIFIER, name, string.place})));
      },
      [&](size_t at) {
        // The bracket's end, so that only the expression is divided into tokens.
        size_t end = at;
        int depth = 0;
        for (; end < before.size(); ++end) {
          depth += before[end] == '(' ? 1 : before[end] == ')' ? -1 : 0;
          if (depth == 0) break;
        }
        RequireAt(string.place, end < before.size(), "the '(' in ", string.text, " has no ')'");
        const Tokens tokens = Tokenize(std::string_view(before).substr(at, end + 1 - at),
                                       *string.place.file, &string.place);
        size_t first = 0;
        grow(StrCat(expand::Evaluate(tokens, &first, lookup)));
        return end + 1;
      });
  return after;
}

Tokens Scope::Substitute(const Tokens& tokens) const {
  Tokens result;
  const auto add = [&](const Tokens& values, const SourcePlace& place) {
    for (const Token& token : values)
      result.push_back({token.type, token.text, place, token.prefix});
  };
  const auto lookup = [&](const Token& name) { return ValueOf(name); };
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const bool is_expression = token.Is("$") && i + 1 < tokens.size() && tokens[i + 1].Is("(");
    if (is_expression) {
      RequireAt(
          token.place, block != nullptr,
          "$(...) stands outside of a block, and only blocks have arguments; write the value");
      size_t at = i + 1;
      add(NumberTokens(expand::Evaluate(tokens, &at, lookup), token.place), token.place);
      i = at - 1;
    } else if (token.Is("$") && i + 1 < tokens.size()) {
      add(ValueOf({tokens[i + 1].type, tokens[i + 1].text, token.place}), token.place);
      ++i;
    } else if (token.is_string() && block != nullptr && token.text.find('$') != std::string::npos) {
      const std::optional<Tokens> whole = WholeReference(token);
      const bool is_string = whole && whole->size() == 1 && whole->front().is_string();
      add({is_string ? whole->front() : Quoted(SubstituteText(token), token.place)}, token.place);
    } else {
      result.push_back(token);
    }
    RequireShort(result, token.place);
  }
  // "--5" would be an error of the parser.
  if (result.size() > 2 && result[0].Is("-") && result[1].Is("-"))
    result.erase(result.begin(), result.begin() + 2);
  return result;
}

std::optional<Tokens> Scope::WholeReference(const Token& string) const {
  if (block == nullptr || !string.is_string()) return std::nullopt;
  const std::string text = Unquoted(string);
  size_t begin = 1, end = text.size();
  if (!text.starts_with("$")) return std::nullopt;
  if (text.starts_with("${") && text.ends_with("}")) {
    begin = 2;
    --end;
  }
  const std::string name = text.substr(begin, end - begin);
  if (name.empty() || !std::all_of(name.begin(), name.end(), IsLetterOfName)) return std::nullopt;
  return ValueOf({Tokenizer::TYPE_IDENTIFIER, name, string.place});
}

Tokens Scope::Evaluate(const Tokens& tokens) const {
  return WithPrefix(Substitute(tokens), prefix);
}

std::string Scope::TextOf(const Field& field) const {
  const Tokens value = Substitute(field.value);
  RequireAt(field.name.place, value.size() == 1 && value[0].is_string(), "field '", field.name.text,
            "' takes a text between quotes, got ",
            field.is_message ? "{" : Joined(value).substr(0, 80));
  return Unquoted(value[0]);
}

std::string Scope::NameOf(const Field& field) const {
  return NameIn(prefix, TextOf(field));
}

Tokens Scope::BlobsOf(const Field& field) const {
  const Tokens value = Substitute(field.value);
  RequireAt(field.name.place, !field.is_message, "field '", field.name.text,
            "' takes names of blobs between quotes, got {");
  Tokens blobs;
  for (const Token& token : value) {
    if (token.Is("[") || token.Is("]") || token.Is(",")) continue;
    RequireAt(field.name.place, token.is_string(), "field '", field.name.text,
              "' takes names of blobs between quotes, got ", Joined(value).substr(0, 80));
    const std::string name =
        NameIn(token.prefix == nullptr ? prefix : *token.prefix, Unquoted(token));
    RequireAt(token.place, !name.empty(), "field '", field.name.text, "' is an empty name");
    blobs.push_back(Quoted(name, token.place));
  }
  return blobs;
}

}  // namespace caffe::expand
