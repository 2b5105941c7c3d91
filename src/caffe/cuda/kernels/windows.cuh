// Maps output position and tap of a convolution to an input position, and back.
#pragma once

#include "caffe/cuda/launch.cuh"
#include "caffe/ops/conv.hpp"

namespace caffe::cuda {

// Spatial positions and taps are flattened row-major numbers, for any number of axes.
class Windows {
 public:
  // `input` and `output` are N,C,D...; only D... is used.
  Windows(const ops::ConvGeometry& geometry, const Shape& input, const Shape& output)
      : axes_(geometry.spatial_axes()) {
    for (int i = 0; i < axes_; ++i) {
      all_[i] = {geometry.kernel[i],   geometry.stride[i], geometry.pad[i],
                 geometry.dilation[i], input[2 + i],       output[2 + i]};
      taps *= geometry.kernel[i];
      in_pixels *= input[2 + i];
      out_pixels *= output[2 + i];
    }
  }

  // Returns -1 in the padding.
  __device__ int64_t Input(int64_t output, int64_t tap) const {
    int64_t position = 0, scale = 1;
    for (int i = axes_ - 1; i >= 0; --i) {
      const Axis& axis = all_[i];
      int64_t at, k;
      output = Divide(output, axis.out, &at);
      tap = Divide(tap, axis.kernel, &k);
      const int64_t in = at * axis.stride - axis.pad + k * axis.dilation;
      if (in < 0 || in >= axis.in) return -1;
      position += in * scale;
      scale *= axis.in;
    }
    return position;
  }

  // Returns -1 if no window has this tap at that input position.
  __device__ int64_t Output(int64_t input, int64_t tap) const {
    int64_t position = 0, scale = 1;
    for (int i = axes_ - 1; i >= 0; --i) {
      const Axis& axis = all_[i];
      int64_t in, k, beyond;
      input = Divide(input, axis.in, &in);
      tap = Divide(tap, axis.kernel, &k);
      const int64_t start = in + axis.pad - k * axis.dilation;
      if (start < 0) return -1;
      const int64_t at = Divide(start, axis.stride, &beyond);
      if (beyond != 0 || at >= axis.out) return -1;
      position += at * scale;
      scale *= axis.out;
    }
    return position;
  }

 private:
  struct Axis {
    int64_t kernel, stride, pad, dilation, in, out;
  };
  int axes_;
  Axis all_[kMaxAxes - 2];

 public:
  int64_t taps = 1, in_pixels = 1, out_pixels = 1;
};

}  // namespace caffe::cuda
