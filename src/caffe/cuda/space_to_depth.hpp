// Convolutions of images of few channels by steps of several pixels, as of a net's first layer:
// the pixels of a step become channels of one pixel (space to depth), over which the convolution
// goes pixel by pixel. Then vendors' engines serve that read whole packs of channels, at the cost
// of a copy of the images. A pixel that is no number spoils each result in whose blocks it lies,
// also beyond the kernel.
#pragma once

#include "caffe/cuda/copied_operands.hpp"

namespace caffe::cuda {

// What the kernel that `make` makes of the convolution (Conv or ConvGradWeights) over such images
// computes; refuses where the channels do not lie last, are many, or are in groups, and where the
// kernel has gaps, skips pixels, or goes pixel by pixel already. The names of its algorithms end in
// the step.
KernelOrRefusal OnSpaceToDepth(const KernelRequest& request, const MakeConvolution& make);

}  // namespace caffe::cuda
