// Arithmetic of $(width * 2).
#pragma once

#include <cstdint>
#include <functional>

#include "caffe/io/expand/text_tree.hpp"

namespace caffe::expand {

// The tokens that a name after or within "$" stands for.
using Lookup = std::function<Tokens(const Token& name)>;

// Computes the expression in `tokens` from position `*at`, where '(' stands, to its ')'; moves
// `*at` to the token after it. Knows + - * / and parentheses of 64-bit integers, and names with or
// without '$'. Throws Mistake for a division that leaves a remainder, an overflow, and a name that
// is not an integer.
int64_t Evaluate(const Tokens& tokens, size_t* at, const Lookup& lookup);

// The integer that these tokens are, such as "-" "5". `name` is for the error.
int64_t IntegerOf(const Tokens& tokens, const Token& name);

// The tokens of a number.
Tokens NumberTokens(int64_t number, const SourcePlace& place);

}  // namespace caffe::expand
