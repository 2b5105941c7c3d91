// Arithmetic of windows that slide along an axis: convolutions, poolings, patches, correlations.
// Options come from files and may be any 32-bit numbers; nothing here overflows, and sizes that
// kernels cannot count are rejected with both values.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe::ops {

// Largest extent of an axis, and largest option of a window, because kernels and vendors' libraries
// count positions in int.
inline constexpr int64_t kMostPlaces = std::numeric_limits<int32_t>::max();

// Number of positions of a window if its last step would lead beyond the input.
enum class WindowRounding {
  kDown,        // only windows inside
  kTowardZero,  // as kDown, but one window if the input is too small by less than a stride
  kUp,          // one more window, which extends beyond the input
};

// A window along one axis. `axis` names the axis in messages: "height", "spatial axis 0".
//
//   const Window window{.kernel = 3, .stride = 2, .pad = 1};
//   window.Outputs("height", 28, WindowRounding::kTowardZero);  // 14
struct CAFFE_EXPORT Window {
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;

  // Extent of the window in input positions, including gaps of dilation.
  int64_t Span() const { return dilation * (kernel - 1) + 1; }
  // Throws InvalidArgument unless each option is in its range and Span() is at most kMostPlaces.
  // All functions below call it first.
  void Check(std::string_view axis) const;
  // Extent of the input with its padding.
  int64_t Padded(std::string_view axis, int64_t input) const;
  // Throws InvalidArgument if the window has no position.
  int64_t Outputs(std::string_view axis, int64_t input, WindowRounding rounding) const;
  // Output extent of a transposed convolution: with kDown, a window has `input` positions there.
  // Throws InvalidArgument if padding leaves no output.
  int64_t TransposedOutputs(std::string_view axis, int64_t input) const;
};

}  // namespace caffe::ops
