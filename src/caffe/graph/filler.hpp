// Fillers: initialize parameters and dummy inputs.
#pragma once

#include <cstdint>
#include <span>

#include "caffe/core/philox.hpp"
#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/shape.hpp"

namespace caffe {

// Fills `values`, the elements of `shape`, with one of these types of `filler`:
//   constant            value
//   uniform             U[min, max)
//   gaussian            N(mean, std^2); with sparse >= 0, each weight is kept with probability
//                       sparse / shape[0]
//   positive_unitball   U[0, 1), each item of axis 0 divided by its sum
//   xavier              U[-a, a), a = sqrt(3 / n)      (Glorot and Bengio 2010)
//   msra                N(0, 2 / n)                    (He et al. 2015)
//   bilinear            upsampling weights; 4 axes, square kernel
// n is the fan that variance_norm selects. NVCaffe's "...static" types do not differ here, because
// numbers depend only on the seed and the parameter's name. `draw` distinguishes repeated fills
// from one stream. Throws InvalidArgument for an unknown type or a shape that does not fit.
CAFFE_EXPORT void Fill(const FillerParameter& filler, const Shape& shape,
                       const RandomStream& random, uint64_t draw, std::span<float> values);

// True if FillPart() can fill a part of the values.
bool FillsParts(const FillerParameter& filler);
// Fills `values` with what Fill(), in its draw 0, gives elements from `first` on.
void FillPart(const FillerParameter& filler, const Shape& shape, const RandomStream& random,
              int64_t first, std::span<float> values);

// Throws InvalidArgument if Fill() would, without filling anything.
CAFFE_EXPORT void CheckFiller(const FillerParameter& filler, const Shape& shape);

}  // namespace caffe
