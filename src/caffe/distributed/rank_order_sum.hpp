// The one order in which numbers of several ranks are added up, whatever carries them, so that
// threads and processes come to the same bits.
#pragma once

#include <cstdint>
#include <span>

#include "caffe/dtype.hpp"

namespace caffe {

// For each element i in [begin, end): factor * (inputs[0][i] + inputs[1][i] + ...), added up in
// double and in this order, becomes outputs[k][i] of each k. All are arrays of `dtype`, a type of
// floats; outputs may be inputs. The inputs count, and the outputs become, what is left of them in
// `wire`, which WireType() has given.
void SumInRankOrder(DType dtype, DType wire, std::span<void* const> inputs,
                    std::span<void* const> outputs, int64_t begin, int64_t end, double factor);

}  // namespace caffe
