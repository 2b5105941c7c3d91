// Computes single results of a convolution and its gradients by definition: any number of axes, any
// type, any layout. Reference kernels compute all results, the check of a vendor's kernel only
// some.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "caffe/ops/conv.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// Address arithmetic of one convolution. Spatial positions are flattened in row-major order.
class ConvIndex {
 public:
  ConvIndex(const ops::ConvGeometry& geometry, const TensorDesc& x, const TensorDesc& y)
      : geometry_(geometry),
        axes_(geometry.spatial_axes()),
        items(x.shape[0]),
        channels(x.shape[1]),
        outputs(y.shape[1]),
        in_pixels(x.shape.count(2)),
        out_pixels(y.shape.count(2)),
        per_group(channels / geometry.group),
        outputs_per_group(outputs / geometry.group),
        in_last_(x.layout == Layout::kChannelsLast),
        out_last_(y.layout == Layout::kChannelsLast) {
    for (const int64_t extent : geometry.kernel) taps *= extent;
    for (int i = 0; i < axes_; ++i)
      in_extents_[i] = x.shape[2 + i], out_extents_[i] = y.shape[2 + i];
  }

  int64_t X(int64_t n, int64_t c, int64_t p) const {
    return in_last_ ? (n * in_pixels + p) * channels + c : (n * channels + c) * in_pixels + p;
  }
  int64_t Y(int64_t n, int64_t k, int64_t p) const {
    return out_last_ ? (n * out_pixels + p) * outputs + k : (n * outputs + k) * out_pixels + p;
  }
  // Offset of the weight from channel `c` of a group to output channel `k`.
  int64_t W(int64_t k, int64_t c, int64_t tap) const { return (k * per_group + c) * taps + tap; }
  // The first channel that output channel `k` reads.
  int64_t First(int64_t k) const { return k / outputs_per_group * per_group; }

  // The input position that output position `p` reads through `tap`; -1 in the padding.
  int64_t Input(int64_t p, int64_t tap) const {
    int64_t position = 0, scale = 1;
    for (int i = axes_ - 1; i >= 0; --i) {
      const int64_t out = p % out_extents_[i], k = tap % geometry_.kernel[i];
      p /= out_extents_[i];
      tap /= geometry_.kernel[i];
      const int64_t in = out * geometry_.stride[i] - geometry_.pad[i] + k * geometry_.dilation[i];
      if (in < 0 || in >= in_extents_[i]) return -1;
      position += in * scale;
      scale *= in_extents_[i];
    }
    return position;
  }
  // The output position that reads input position `q` through `tap`; -1: none.
  int64_t Output(int64_t q, int64_t tap) const {
    int64_t position = 0, scale = 1;
    for (int i = axes_ - 1; i >= 0; --i) {
      const int64_t in = q % in_extents_[i], k = tap % geometry_.kernel[i];
      q /= in_extents_[i];
      tap /= geometry_.kernel[i];
      const int64_t steps = in + geometry_.pad[i] - k * geometry_.dilation[i];
      const int64_t out = steps / geometry_.stride[i];
      if (steps < 0 || steps % geometry_.stride[i] != 0 || out >= out_extents_[i]) return -1;
      position += out * scale;
      scale *= out_extents_[i];
    }
    return position;
  }

 private:
  const ops::ConvGeometry& geometry_;
  const int axes_;
  std::array<int64_t, kMaxAxes> in_extents_{}, out_extents_{};

 public:
  const int64_t items, channels, outputs, in_pixels, out_pixels, per_group, outputs_per_group;
  int64_t taps = 1;

 private:
  const bool in_last_, out_last_;
};

// Adds to `start` the products of output position `p` of channel `k`, tap by tap.
template <typename T, typename A>
A ConvSum(const ConvIndex& at, const TensorView& x, const TensorView& w, int64_t n, int64_t k,
          int64_t p, A start) {
  for (int64_t tap = 0; tap < at.taps; ++tap) {
    const int64_t position = at.Input(p, tap);
    if (position < 0) continue;
    for (int64_t c = 0; c < at.per_group; ++c) {
      start += static_cast<A>(x.as<const T>()[at.X(n, at.First(k) + c, position)]) *
               static_cast<A>(w.as<const T>()[at.W(k, c, tap)]);
    }
  }
  return start;
}

// The same for 8-bit data with the 8-bit weights of output channel `k`.
template <typename T>
int32_t ConvSumOfNumbers(const ConvIndex& at, const TensorView& x, std::span<const int8_t> weights,
                         int64_t n, int64_t k, int64_t p) {
  int32_t sum = 0;
  for (int64_t tap = 0; tap < at.taps; ++tap) {
    const int64_t position = at.Input(p, tap);
    if (position < 0) continue;
    for (int64_t c = 0; c < at.per_group; ++c) {
      sum += x.as<const T>()[at.X(n, at.First(k) + c, position)] *
             weights[static_cast<size_t>(c * at.taps + tap)];
    }
  }
  return sum;
}

// The gradient of input position `q` of channel `c`, summed over outputs in memory order.
template <typename T, typename A>
A ConvGradDataSum(const ConvIndex& at, const TensorView& dy, const TensorView& w, int64_t n,
                  int64_t c, int64_t q) {
  A sum(0);
  const int64_t first = c / at.per_group * at.outputs_per_group;
  for (int64_t tap = at.taps - 1; tap >= 0; --tap) {
    const int64_t position = at.Output(q, tap);
    if (position < 0) continue;
    for (int64_t k = first; k < first + at.outputs_per_group; ++k) {
      sum += static_cast<A>(dy.as<const T>()[at.Y(n, k, position)]) *
             static_cast<A>(w.as<const T>()[at.W(k, c % at.per_group, tap)]);
    }
  }
  return sum;
}

// The gradient of the weight from channel `c` of a group to output channel `k`.
template <typename T>
double ConvGradWeightSum(const ConvIndex& at, const TensorView& x, const TensorView& dy, int64_t k,
                         int64_t c, int64_t tap) {
  double sum = 0;
  for (int64_t n = 0; n < at.items; ++n) {
    for (int64_t p = 0; p < at.out_pixels; ++p) {
      const int64_t position = at.Input(p, tap);
      if (position < 0) continue;
      sum += static_cast<double>(dy.as<const T>()[at.Y(n, k, p)]) *
             static_cast<double>(x.as<const T>()[at.X(n, at.First(k) + c, position)]);
    }
  }
  return sum;
}

// The gradient of the bias of output channel `k`.
template <typename T>
double ConvGradBiasSum(const ConvIndex& at, const TensorView& dy, int64_t k) {
  double sum = 0;
  for (int64_t n = 0; n < at.items; ++n) {
    for (int64_t p = 0; p < at.out_pixels; ++p)
      sum += static_cast<double>(dy.as<const T>()[at.Y(n, k, p)]);
  }
  return sum;
}

}  // namespace caffe::cpu
