#include "caffe/ops/window.hpp"

#include <string>

#include "caffe/error.hpp"

namespace caffe::ops {
namespace {

void RequireInRange(const char* option, int64_t value, int64_t least, std::string_view axis) {
  Require(least <= value && value <= kMostPlaces, option, " is ", value, " along ", axis,
          "; it must be in ", least, "..", kMostPlaces);
}

std::string Extents(const Window& window) {
  std::string text = StrCat("kernel_size ", window.kernel);
  if (window.dilation != 1) text += StrCat(", dilation ", window.dilation);
  return text;
}

}  // namespace

void Window::Check(std::string_view axis) const {
  RequireInRange("kernel_size", kernel, 1, axis);
  RequireInRange("stride", stride, 1, axis);
  RequireInRange("pad", pad, 0, axis);
  RequireInRange("dilation", dilation, 1, axis);
  Require(Span() <= kMostPlaces, "kernel_size ", kernel, " and dilation ", dilation, " span ",
          Span(), " places along ", axis, "; they may span at most ", kMostPlaces,
          ", so lower one of them");
}

int64_t Window::Padded(std::string_view axis, int64_t input) const {
  Check(axis);
  Require(0 <= input && input <= kMostPlaces, "the input has ", input, " places along ", axis,
          "; it may have at most ", kMostPlaces);
  const int64_t padded = input + 2 * pad;
  Require(padded <= kMostPlaces, "pad ", pad, " makes ", padded, " places of ", input, " along ",
          axis, "; there may be at most ", kMostPlaces, ", so lower pad");
  return padded;
}

int64_t Window::Outputs(std::string_view axis, int64_t input, WindowRounding rounding) const {
  const int64_t padded = Padded(axis, input), room = padded - Span();
  Require(room > (rounding == WindowRounding::kDown ? -1 : -stride), "kernel spans ", Span(),
          " along ", axis, " (", Extents(*this), ") but the padded input has ", padded,
          "; raise pad or lower kernel_size");
  return (rounding == WindowRounding::kUp ? room + stride - 1 : room) / stride + 1;
}

int64_t Window::TransposedOutputs(std::string_view axis, int64_t input) const {
  Check(axis);
  Require(1 <= input && input <= kMostPlaces, "the input has ", input, " places along ", axis,
          "; it must have 1..", kMostPlaces);
  const int64_t padded = stride * (input - 1) + Span();
  Require(padded <= kMostPlaces, "stride ", stride, " makes ", padded, " places of ", input,
          " along ", axis, "; there may be at most ", kMostPlaces,
          ", so lower stride, kernel_size or dilation");
  Require(padded > 2 * pad, "pad ", pad, " leaves nothing of the ", padded, " places along ", axis,
          "; lower pad");
  return padded - 2 * pad;
}

}  // namespace caffe::ops
