// Shared code of the oneDNN convolution kernels.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "caffe/core/saturating_product.hpp"
#include "caffe/cpu/onednn.hpp"
#include "caffe/ops/conv.hpp"

namespace caffe::cpu {

// Memory descriptions of a convolution: images in the plan's layout, weights also with format
// `any`.
struct ConvDescs {
  dnnl::memory::desc x, y, weights, any_weights, bias;
  dnnl::memory::dims strides, dilations, pad_front, pad_back;
  bool has_bias = false;
};

inline dnnl::memory::dims Subtract(const std::vector<int64_t>& values, int64_t by) {
  dnnl::memory::dims result;
  for (const int64_t value : values) result.push_back(value - by);
  return result;
}

// The padding that gives `output` positions for `input`; negative if the input's end is unused.
inline dnnl::memory::dims BackPadding(const ops::ConvGeometry& g, const Shape& x, const Shape& y) {
  dnnl::memory::dims padding;
  for (int i = 0; i < g.spatial_axes(); ++i) {
    padding.push_back((y[2 + i] - 1) * g.stride[i] + g.Span(i) - x[2 + i] - g.pad[i]);
  }
  return padding;
}

inline ConvDescs DescribeConv(const ops::ConvGeometry& g, const TensorDesc& x,
                              const TensorDesc& weights, const TensorDesc& y, bool has_bias) {
  ConvDescs descs;
  descs.x = OneDnnDesc(x);
  descs.y = OneDnnDesc(y);
  std::vector<int64_t> dims = weights.shape.dims();
  if (g.group > 1) {
    dims[0] /= g.group;
    dims.insert(dims.begin(), g.group);
  }
  descs.weights = OneDnnDesc({Shape(dims), weights.dtype});
  descs.any_weights =
      dnnl::memory::desc(dims, OneDnnType(weights.dtype), dnnl::memory::format_tag::any);
  descs.has_bias = has_bias;
  if (has_bias) {
    descs.bias =
        dnnl::memory::desc({y.shape[1]}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::x);
  }
  descs.strides = g.stride;
  descs.dilations = Subtract(g.dilation, 1);
  descs.pad_front = g.pad;
  descs.pad_back = BackPadding(g, x.shape, y.shape);
  return descs;
}

// oneDNN allocates tables of an image's positions (4 KiB each) and of a kernel's taps (10 bytes
// each), and divides by sums that overflow for large dilation. Real images are smaller than this.
inline constexpr int64_t kMostExtent = int64_t{1} << 18, kMostTaps = int64_t{1} << 20;

inline std::optional<Refusal> RefuseLarge(const ops::ConvGeometry& geometry, const Shape& image) {
  for (int i = 0; i < geometry.spatial_axes(); ++i) {
    const int64_t padded = image[2 + i] + 2 * geometry.pad[i];
    const int64_t extent =
        std::max({padded, geometry.Span(i), geometry.stride[i], geometry.dilation[i]});
    if (extent > kMostExtent) {
      return Refusal{StrCat("the window or the padded image is longer than ", kMostExtent,
                            ": oneDNN would take gigabytes to plan it")};
    }
  }
  if (SaturatingProduct(geometry.kernel) > kMostTaps)
    return Refusal{StrCat("a kernel of more than ", kMostTaps, " places")};
  return std::nullopt;
}

// A defect of oneDNN 2.6 with AMX: if windows leave out pixels, it reads and writes out of bounds.
inline std::optional<Refusal> RefuseWindows(const ops::ConvGeometry& geometry, DType dtype) {
  if (dtype == DType::kFloat || !geometry.LeavesOutPixels()) return std::nullopt;
  return Refusal{StrCat("windows of ", Name(dtype), " that leave out pixels")};
}

inline bool AreAll(const std::vector<int64_t>& values, int64_t wanted) {
  return std::ranges::all_of(values, [&](int64_t value) { return value == wanted; });
}

// True if some window has all its taps in the padding.
inline bool HasEmptyWindow(const ops::ConvGeometry& g, const Shape& x, const Shape& y) {
  for (int i = 0; i < g.spatial_axes(); ++i) {
    for (int64_t at = 0; at < y[2 + i]; ++at) {
      const int64_t begin = at * g.stride[i] - g.pad[i];
      const int64_t tap = begin < 0 ? (-begin + g.dilation[i] - 1) / g.dilation[i] : 0;
      if (tap >= g.kernel[i] || begin + tap * g.dilation[i] >= x[2 + i]) return true;
    }
  }
  return false;
}

}  // namespace caffe::cpu
