// The values of a random net's inputs. The name of an input determines them:
//
//   x...            numbers of mean 0 and variance 1
//   binary...       0 or 1
//   select...       0 or 1, rarely all the same
//   cont<N>...      0 or 1, and 0 for the first step of N sequences, which begin in each pass
//   label<K>...     whole numbers from 0 to K - 1
//   nan...          like x, except for a few elements that are NaN or infinite
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace caffe::fuzz {

std::vector<double> InputValues(const std::string& name, int64_t count, uint64_t seed);

// Returns whether the input's numbers are exact in every type: classes, choices.
bool IsExactInput(const std::string& name);

}  // namespace caffe::fuzz
