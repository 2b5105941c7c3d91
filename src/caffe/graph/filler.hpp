// Fillers: how a parameter or a dummy input gets its first values.
#pragma once

#include <cstdint>
#include <span>

#include "caffe/core/philox.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe {

// Fills `values`, the elements of `shape`, as `filler` says:
//   constant            value
//   uniform             U[min, max)
//   gaussian            N(mean, std^2); with sparse >= 0, each weight is kept with probability
//                       sparse / shape[0]
//   positive_unitball   U[0, 1), each item of axis 0 divided by its sum
//   xavier              U[-a, a), a = sqrt(3 / n)      (Glorot and Bengio 2010)
//   msra                N(0, 2 / n)                    (He et al. 2015)
//   bilinear            weights that upsample; 4 axes, square kernel
// n is the fan that variance_norm names. NVCaffe's "...static" types are the same here, because
// numbers depend on the seed and the parameter's name alone. `draw` tells apart repeated fills of
// one stream. Throws InvalidArgument for an unknown type or a shape that does not fit.
CAFFE_EXPORT void Fill(const FillerParameter& filler, const Shape& shape,
                       const RandomStream& random, uint64_t draw, std::span<float> values);

// Throws InvalidArgument for what Fill() would refuse, without filling anything.
CAFFE_EXPORT void CheckFiller(const FillerParameter& filler, const Shape& shape);

}  // namespace caffe
