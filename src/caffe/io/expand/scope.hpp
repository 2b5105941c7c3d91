// Names and arguments within one expansion of a block.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caffe/io/expand/expression.hpp"
#include "caffe/io/expand/text_tree.hpp"

namespace caffe::expand {

// A definition of a block.
struct Block {
  struct Argument {
    Token name;
    std::optional<Tokens> default_value;
  };

  std::string name;
  SourcePlace place;
  std::vector<Argument> arguments;
  const Fields* body = nullptr;  // its layers and uses among other fields
  int ins = 0, outs = 0;         // highest numbers of $in and $out in it
};

// The net itself, without a block, or one expansion of a block.
class Scope {
 public:
  const Block* block = nullptr;
  const Scope* caller = nullptr;
  int use = -1;        // number of the expansion in SourceText
  std::string prefix;  // of the names of layers and blobs: "res2/1/"
  std::map<std::string, Tokens> arguments;
  std::vector<std::string> bottoms, tops;  // complete names of $in and $out
  Fields conditions;  // include and exclude, for layers that have none themselves
  int64_t index = 1;

  // Replaces references. In the net itself, a reference is a Mistake, and strings may contain '$'.
  Tokens Substitute(const Tokens& tokens) const;

  // As the argument of a use in this scope, which must outlive the result: tokens have a prefix.
  Tokens Evaluate(const Tokens& tokens) const;

  // The contents of the string that a field must have.
  std::string TextOf(const Field& field) const;

  // The complete name of the layer, parameter or use that the field names.
  std::string NameOf(const Field& field) const;

  // Complete names of the blobs in a field: strings. A reference to an argument has its blob's
  // name.
  Tokens BlobsOf(const Field& field) const;

 private:
  Tokens ValueOf(const Token& name) const;
  std::string SubstituteText(const Token& string) const;
  // The value of the argument if the string consists of its name: "$skip".
  std::optional<Tokens> WholeReference(const Token& string) const;
};

// The number of a reference to a bottom or top: 1 for "in", 2 for "in2", with `kind` "in"; 0 for
// other names.
int NumberOfBlob(const std::string& name, const std::string& kind);

// Highest number of references of this kind in the fields.
int HighestBlob(const Fields& fields, const std::string& kind);

// Throws Mistake if a value is longer than any net needs: arguments that contain others twice grow
// with the power of two.
void RequireShort(const Tokens& tokens, const SourcePlace& place);

}  // namespace caffe::expand
