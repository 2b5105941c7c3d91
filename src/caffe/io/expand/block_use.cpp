#include "caffe/io/expand/block_use.hpp"

#include <algorithm>
#include <set>

#include "caffe/core/counted.hpp"
#include "caffe/core/nearest_name.hpp"

namespace caffe::expand {
namespace {

using google::protobuf::io::Tokenizer;

// Fields of a use that are not arguments.
const std::set<std::string>& FieldsOfUse() {
  static const std::set<std::string> kFields = {"block", "bottom", "exclude", "include",
                                                "name",  "repeat", "top"};
  return kFields;
}

std::string DidYouMean(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = NearestName(name, known);
  return near.empty() ? "" : StrCat("; did you mean '", near, "'?");
}

const std::string& NameOfField(const Field& field) {
  return field.name.text;
}

// The only field of this name, or null. Throws Mistake if there are two.
const Field* OnlyField(const Fields& fields, const std::string& name) {
  const Field* found = nullptr;
  for (const Field& field : fields) {
    if (NameOfField(field) != name) continue;
    if (found != nullptr)
      throw Mistake{field.name.place, StrCat("'", name, "' is given twice, first at ",
                                             TextOfPlace(found->name.place), "; keep one")};
    found = &field;
  }
  return found;
}

// A text that a block's definition must have; references have no meaning there.
std::string PlainText(const Field& owner, const std::string& name) {
  const Field* field = OnlyField(owner.fields, name);
  RequireAt(owner.name.place,
            field != nullptr && field->value.size() == 1 && field->value[0].is_string(), "'",
            NameOfField(owner), "' has no ", name, "; write ", name, ": \"...\"");
  return Unquoted(field->value[0]);
}

Block::Argument ReadArgument(const Field& field, const Block& block) {
  RequireAt(field.name.place, field.is_message, "write argument { name: \"width\" }");
  for (const Field& one : field.fields) {
    const std::string& name = NameOfField(one);
    RequireAt(one.name.place, name == "name" || name == "default", "an argument has no field '",
              name, "'; its fields are name and default");
  }
  Block::Argument argument{field.name, {}};
  argument.name.text = PlainText(field, "name");
  const std::string& name = argument.name.text;
  const bool is_name = !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
                       std::all_of(name.begin(), name.end(), [](unsigned char letter) {
                         return std::isalnum(letter) != 0 || letter == '_';
                       });
  RequireAt(field.name.place, is_name, "'", name,
            "' is not a name of an argument; use letters, digits and _");
  const bool is_taken = FieldsOfUse().contains(name) || name == "index" ||
                        NumberOfBlob(name, "in") > 0 || NumberOfBlob(name, "out") > 0;
  RequireAt(field.name.place, !is_taken, "an argument cannot be called '", name,
            "', which has a meaning in every block; choose another name");
  for (const Block::Argument& other : block.arguments) {
    RequireAt(field.name.place, other.name.text != name, "block '", block.name, "' has argument '",
              name, "' twice; remove one");
  }
  if (const Field* value = OnlyField(field.fields, "default"))
    argument.default_value = ValueTokens(*value);
  return argument;
}

// True if a layer or a use in the block makes this blob.
bool Makes(const Block& block, int number) {
  const std::string name = number == 1 ? "out" : StrCat("out", number);
  for (const Field& field : *block.body) {
    for (const Field& one : field.fields) {
      if (NameOfField(one) != "top") continue;
      for (const Token& token : one.value) {
        const std::string text = token.is_string() ? Unquoted(token) : "$" + token.text;
        if (text == "$" + name || text == "${" + name + "}") return true;
      }
    }
  }
  return false;
}

[[noreturn]] void RefuseArgument(const Field& given, const Block& block) {
  const std::string& name = NameOfField(given);
  std::vector<std::string> known(FieldsOfUse().begin(), FieldsOfUse().end());
  std::string listed;
  for (const Block::Argument& argument : block.arguments) {
    known.push_back(argument.name.text);
    listed += (listed.empty() ? "" : ", ") + argument.name.text;
  }
  const std::string near = DidYouMean(name, known);
  throw Mistake{given.name.place, StrCat("block '", block.name, "' (", TextOfPlace(block.place),
                                         ") has no argument '", name, "'",
                                         !near.empty()    ? near
                                         : listed.empty() ? "; it has none"
                                                          : "; it has " + listed)};
}

void RequireArguments(const Field& field, const Block& block, const UseOfBlock& use) {
  for (const Field& one : field.fields) {
    const auto is_given = [&](const Block::Argument& argument) {
      return argument.name.text == NameOfField(one);
    };
    if (!FieldsOfUse().contains(NameOfField(one)) &&
        std::none_of(block.arguments.begin(), block.arguments.end(), is_given))
      RefuseArgument(one, block);
  }
  for (const Block::Argument& argument : block.arguments) {
    const std::string& name = argument.name.text;
    if (argument.default_value || use.arguments.contains(name)) continue;
    throw Mistake{
        field.name.place,
        StrCat("use '", use.name, "' does not give '", name, "', which block '", block.name,
               "' needs (", TextOfPlace(argument.name.place), "); add ", name, ": ...")};
  }
}

void RequireBlobs(const Field& field, const Block& block, const UseOfBlock& use) {
  const auto ins = static_cast<size_t>(block.ins), outs = static_cast<size_t>(block.outs);
  const bool is_chain = use.repeat.value_or(1) == 1 || (ins > 0 && outs > 0);
  if (use.bottoms.size() == ins && use.tops.size() == outs && is_chain) return;
  const std::string about = StrCat("block '", block.name, "' (", TextOfPlace(block.place), ")");
  RequireAt(field.name.place, use.bottoms.size() == ins, "use '", use.name, "' gives ",
            Counted(use.bottoms.size(), "bottom"), ", but ", about, " reads ", ins,
            ins == 0   ? ": none of its layers has bottom: \"$in\""
            : ins == 1 ? ": $in"
                       : StrCat(": $in to $in", ins));
  RequireAt(field.name.place, use.tops.size() == outs, "use '", use.name, "' gives ",
            Counted(use.tops.size(), "top"), ", but ", about, " makes ", outs,
            outs == 0   ? ": none of its layers has top: \"$out\""
            : outs == 1 ? ": $out"
                        : StrCat(": $out to $out", outs));
  throw Mistake{field.name.place,
                StrCat("use '", use.name, "' repeats ", about,
                       ", which does not both read $in and make $out, so that no repetition "
                       "reads what the one before it made")};
}

}  // namespace

Tokens ValueTokens(const Field& field) {
  if (!field.is_message) return field.value;
  const SourcePlace& place = field.name.place;
  Tokens tokens = {{Tokenizer::TYPE_SYMBOL, "{", place}};
  for (const Field& inner : field.fields) {
    tokens.push_back(inner.name);
    if (!inner.is_message) tokens.push_back({Tokenizer::TYPE_SYMBOL, ":", inner.name.place});
    const Tokens value = ValueTokens(inner);
    tokens.insert(tokens.end(), value.begin(), value.end());
  }
  tokens.push_back({Tokenizer::TYPE_SYMBOL, "}", place});
  return tokens;
}

Block ReadBlock(const Field& field) {
  RequireAt(field.name.place, field.is_message, "write block { name: \"...\" layer { ... } }");
  Block block{PlainText(field, "name"), field.name.place, {}, &field.fields};
  bool has_layer = false;
  for (const Field& one : field.fields) {
    const std::string& name = NameOfField(one);
    if (name == "argument") block.arguments.push_back(ReadArgument(one, block));
    const bool is_part = name == "layer" || name == "use";
    has_layer = has_layer || is_part;
    const std::string near = DidYouMean(name, {"argument", "layer", "name", "use"});
    RequireAt(one.name.place, is_part || name == "argument" || name == "name", "block '",
              block.name, "' has no field '", name, "'",
              near.empty() ? "; its fields are name, argument, layer and use" : near);
    RequireAt(one.name.place, !is_part || one.is_message, "write ", name, " { ... }");
    if (!is_part) continue;
    block.ins = std::max(block.ins, HighestBlob(one.fields, "in"));
    block.outs = std::max(block.outs, HighestBlob(one.fields, "out"));
  }
  RequireAt(field.name.place, has_layer, "block '", block.name, "' has no layer");
  constexpr int kMostBlobs = 1000;
  RequireAt(field.name.place, std::max(block.ins, block.outs) <= kMostBlobs, "block '", block.name,
            "' has more than ", kMostBlobs, " bottoms or tops");
  for (int number = 1; number <= block.outs; ++number) {
    const std::string name = number == 1 ? "$out" : StrCat("$out", number);
    RequireAt(field.name.place, Makes(block, number), "block '", block.name, "' never makes ", name,
              "; write top: \"", name, "\" in the layer that makes it");
  }
  return block;
}

UseOfBlock ReadUse(const Field& field, const Block& block, const Scope& scope) {
  UseOfBlock use;
  const Field* name = OnlyField(field.fields, "name");
  RequireAt(field.name.place, name != nullptr, "this use of block '", block.name,
            "' has no name, with which the names of its layers begin; write name: \"...\"");
  use.name = scope.NameOf(*name);
  RequireAt(name->name.place, !use.name.empty() && use.name != scope.prefix,
            "the name of this use is empty; the names of its layers begin with it");
  if (const Field* repeat = OnlyField(field.fields, "repeat")) {
    use.repeat = IntegerOf(scope.Substitute(repeat->value), repeat->name);
    RequireAt(repeat->name.place, *use.repeat >= 1 && *use.repeat <= kMostLayers, "repeat is ",
              *use.repeat, "; give 1 to ", kMostLayers,
              ", the largest number of layers that a net can have");
  }
  for (const Field& one : field.fields) {
    const std::string& of = NameOfField(one);
    if (of == "bottom" || of == "top") {
      for (const Token& blob : scope.BlobsOf(one))
        (of == "top" ? use.tops : use.bottoms).push_back(Unquoted(blob));
    } else if (!FieldsOfUse().contains(of)) {
      OnlyField(field.fields, of);
      use.arguments.emplace(of, scope.Evaluate(ValueTokens(one)));
    }
  }
  if (use.tops.empty() && block.outs == 1) use.tops = {use.name};
  RequireArguments(field, block, use);
  RequireBlobs(field, block, use);
  return use;
}

}  // namespace caffe::expand
