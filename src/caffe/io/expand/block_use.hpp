// Reads the definition of a block, and a use of it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "caffe/io/expand/scope.hpp"
#include "caffe/io/expand/text_tree.hpp"

namespace caffe::expand {

// Most layers of a net, and most expansions of blocks.
inline constexpr int64_t kMostLayers = 100000;

// Reads `block { name: ... argument { ... } layer { ... } }`. The fields must outlive the result.
// Throws Mistake.
Block ReadBlock(const Field& field);

// A use, with its values in the scope that it stands in.
struct UseOfBlock {
  std::string name;                        // complete
  std::vector<std::string> bottoms, tops;  // complete
  std::optional<int64_t> repeat;
  std::map<std::string, Tokens> arguments;
};

// Reads `use { block: ... name: ... }` of this block. Throws Mistake if the block's arguments,
// bottoms and tops are not those that the use gives.
UseOfBlock ReadUse(const Field& field, const Block& block, const Scope& scope);

// The tokens of a field's value; those of a message begin with '{'.
Tokens ValueTokens(const Field& field);

}  // namespace caffe::expand
