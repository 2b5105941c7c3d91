// Arithmetic of windows that slide along an axis: convolutions, poolings, patches, comparisons of
// patches. Options come from files, so each may be any 32-bit number; nothing here overflows, and
// what kernels cannot count is refused with both values.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "caffe/export.hpp"

namespace caffe::ops {

// Most places of an axis, and the largest option of a window: kernels and vendors' libraries count
// places in int.
inline constexpr int64_t kMostPlaces = std::numeric_limits<int32_t>::max();

// How many positions a window has where its last step would lead beyond the input.
enum class WindowRounding {
  kDown,        // only windows inside
  kTowardZero,  // as kDown, but one window where the input lacks less than a stride
  kUp,          // a window more, part of which is beyond
};

// A window along one axis. `axis` names the axis in messages: "height", "spatial axis 0".
//
//   const Window window{.kernel = 3, .stride = 2, .pad = 1};
//   window.Outputs("height", 28, WindowRounding::kTowardZero);  // 14
struct CAFFE_EXPORT Window {
  int64_t kernel = 1, stride = 1, pad = 0, dilation = 1;

  // Places from the window's first to its last, gaps of dilation included.
  int64_t Span() const { return dilation * (kernel - 1) + 1; }
  // Throws InvalidArgument unless each option is in its range and Span() at most kMostPlaces. All
  // functions below do it first.
  void Check(std::string_view axis) const;
  // Places of the input with its padding.
  int64_t Padded(std::string_view axis, int64_t input) const;
  // Throws InvalidArgument where there is no position.
  int64_t Outputs(std::string_view axis, int64_t input, WindowRounding rounding) const;
  // Places that a transposed convolution makes of the input: with kDown, a window has `input`
  // positions there. Throws InvalidArgument where padding leaves none.
  int64_t TransposedOutputs(std::string_view axis, int64_t input) const;
};

}  // namespace caffe::ops
