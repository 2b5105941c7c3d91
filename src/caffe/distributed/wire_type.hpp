// The type in which numbers travel between ranks, which may have fewer bits than the numbers.
#pragma once

#include <cstdint>

#include "caffe/dtype.hpp"

namespace caffe {

// `wanted` where that is narrower than `values`, else `values`. Both are types of floats.
constexpr DType WireType(DType values, DType wanted) {
  return SizeOf(wanted) < SizeOf(values) ? wanted : values;
}

// `count` numbers of one type of floats into another, rounded to nearest even. Finite numbers
// beyond the range of float16 become infinite.
void ConvertNumbers(const void* from, DType from_type, void* to, DType to_type, int64_t count);

}  // namespace caffe
