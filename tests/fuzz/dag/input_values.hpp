// What the inputs of a random net hold. An input's name says it:
//
//   x...            numbers of mean 0 and variance 1
//   binary...       0 or 1
//   select...       0 or 1, rarely all of one kind
//   label<K>...     whole numbers from 0 to K - 1
//   nan...          like x, but for a few elements that are NaN or infinite
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caffe::fuzz {

std::vector<double> InputValues(const std::string& name, int64_t count, uint64_t seed);

// Whether the input's numbers are exact in every type: classes, choices.
bool IsExactInput(const std::string& name);

}  // namespace caffe::fuzz
