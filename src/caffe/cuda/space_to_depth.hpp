// Strided convolutions of images with few channels, as in a net's first layer: the pixels of a step
// become channels of one pixel (space to depth), and the stride becomes 1. This allows vendors'
// engines that read whole packs of channels, at the cost of a copy of the images. A NaN pixel makes
// NaN of every result whose blocks contain it, also beyond the kernel.
#pragma once

#include "caffe/cuda/copied_operands.hpp"

namespace caffe::cuda {

// Wraps the kernel that `make` creates for the convolution (Conv or ConvGradWeights) of such
// images. Refuses unless the images are channels-last with few channels and no groups, and if the
// kernel has dilation, skips pixels, or has stride 1. The names of its algorithms end in the step.
KernelOrRefusal OnSpaceToDepth(const KernelRequest& request, const MakeConvolution& make);

}  // namespace caffe::cuda
