// TensorDesc: shape, dtype and layout of a tensor. TensorView: the same with a pointer to elements.
#pragma once

#include <cstddef>
#include <string>

#include "caffe/dtype.hpp"
#include "caffe/export.hpp"
#include "caffe/shape.hpp"

namespace caffe {

// Physical order of elements. The logical shape is always N,C,H,W.
enum class Layout : uint8_t {
  kPlain,         // row-major over the logical axes
  kChannelsLast,  // N, spatial axes, C; only for tensors with 4 axes
};

// "plain", "channels-last".
CAFFE_EXPORT std::string_view Name(Layout layout);

struct TensorDesc {
  Shape shape;
  DType dtype = DType::kFloat;
  Layout layout = Layout::kPlain;
  // Scale of a quantized tensor of 8-bit numbers: value = scale * number.
  float scale = 1;

  int64_t count() const { return shape.count(); }
  size_t bytes() const { return static_cast<size_t>(count()) * SizeOf(dtype); }
};

// A borrowed tensor. An absent operand has data == nullptr.
struct TensorView : TensorDesc {
  void* data = nullptr;

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

// Copies elements between two host tensors of equal shape, converting dtype and layout. 8-bit
// numbers are copied unchanged, whatever their scale.
CAFFE_EXPORT void CopyTensor(const TensorView& from, const TensorView& to);

}  // namespace caffe
