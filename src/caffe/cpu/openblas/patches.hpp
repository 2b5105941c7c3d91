// Patches of a convolution's input as matrices of doubles, with a row for each output position.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "caffe/ops/conv.hpp"
#include "caffe/shape.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::cpu {

// Sizes of a convolution in double, with any number of axes and either layout, and conversions
// between images and patches. Positions (pixels) and taps are flattened in row-major order;
// channels and outputs are those of one group.
class Patches {
 public:
  // Some positions, taps and channels: rows of a patch matrix and its columns, tap by tap.
  struct Part {
    int64_t item = 0, group = 0;
    int64_t pixel = 0, pixels = 0;
    int64_t tap = 0, taps = 0;
    int64_t channel = 0, channels = 0;

    int64_t columns() const { return taps * channels; }
  };

  Patches(const ops::ConvGeometry& geometry, const TensorDesc& x, const TensorDesc& y);

  // Number of positions per part for which a matrix with `columns` columns has about 8 MB.
  int64_t PixelsOfPart(int64_t columns) const {
    return std::clamp<int64_t>((int64_t{1} << 20) / columns, 64, std::max<int64_t>(out_pixels, 64));
  }

  // Copies the part's elements of x; 0 in the padding.
  void Gather(const double* x, const Part& part, double* matrix) const {
    ForEachTap(part, [&](int64_t position) {
      if (position < 0) {
        std::fill_n(matrix, part.channels, 0.0);
      } else {
        CopyChannels(x + ImageElement(part, position), part.channels, matrix);
      }
      matrix += part.channels;
    });
  }
  // Adds each element to its element of dx.
  void ScatterAdd(const double* matrix, const Part& part, double* dx) const {
    ForEachTap(part, [&](int64_t position) {
      if (position >= 0) {
        double* to = dx + ImageElement(part, position);
        for (int64_t c = 0; c < part.channels; ++c) to[c * in_.channel_stride] += matrix[c];
      }
      matrix += part.channels;
    });
  }

  // Offsets of elements of x and y. Channels are counted from the group's first.
  int64_t InputElement(int64_t item, int64_t group, int64_t channel, int64_t pixel) const {
    return in_.At(item, group * channels + channel, pixel);
  }
  int64_t OutputElement(int64_t item, int64_t group, int64_t output, int64_t pixel) const {
    return out_.At(item, group * outputs + output, pixel);
  }
  // True if the outputs at one position are adjacent in memory; false if the positions of one
  // output are. output_stride() is the distance between such rows.
  bool outputs_adjacent() const { return out_is_channels_last_; }
  int64_t output_stride() const { return out_is_channels_last_ ? outputs * groups : out_pixels; }

 private:
  void CopyChannels(const double* from, int64_t count, double* to) const {
    if (in_.channel_stride == 1) {
      std::copy_n(from, count, to);
    } else {
      for (int64_t c = 0; c < count; ++c) to[c] = from[c * in_.channel_stride];
    }
  }

  struct Strides {
    int64_t item, channel_stride, pixel_stride;

    explicit Strides(const TensorDesc& desc)
        : item(desc.shape.count(1)),
          channel_stride(desc.layout == Layout::kPlain ? desc.shape.count(2) : 1),
          pixel_stride(desc.layout == Layout::kPlain ? 1 : desc.shape[1]) {}
    int64_t At(int64_t n, int64_t c, int64_t p) const {
      return n * item + c * channel_stride + p * pixel_stride;
    }
  };

  int64_t ImageElement(const Part& part, int64_t position) const {
    return InputElement(part.item, part.group, part.channel, position);
  }

  // Calls fn(position in x, -1 in the padding) tap by tap for each output position.
  template <typename Fn>
  void ForEachTap(const Part& part, const Fn& fn) const {
    std::array<int64_t, kMaxAxes> first;  // position read by the first tap
    for (int64_t p = part.pixel; p < part.pixel + part.pixels; ++p) {
      int64_t rest = p;
      for (int i = axes_ - 1; i >= 0; --i) {
        first[i] = rest % out_extents_[i] * geometry_.stride[i] - geometry_.pad[i];
        rest /= out_extents_[i];
      }
      const int64_t* offsets = offsets_.data() + part.tap * axes_;
      for (int64_t tap = 0; tap < part.taps; ++tap, offsets += axes_) {
        int64_t position = 0;
        for (int i = 0; i < axes_ && position >= 0; ++i) {
          const int64_t at = first[i] + offsets[i];
          position = 0 <= at && at < in_extents_[i] ? position * in_extents_[i] + at : -1;
        }
        fn(position);
      }
    }
  }

  ops::ConvGeometry geometry_;
  int axes_;
  std::vector<int64_t> in_extents_, out_extents_;
  std::vector<int64_t> offsets_;  // of each tap relative to the first, axis by axis
  Strides in_, out_;
  bool out_is_channels_last_;

 public:
  const int64_t items, groups, channels, outputs, in_pixels, out_pixels;
  int64_t taps = 1;
};

}  // namespace caffe::cpu
