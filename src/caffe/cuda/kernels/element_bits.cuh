// Elements that are moved and not looked at.
#pragma once

#include "caffe/dtype.hpp"

namespace caffe::cuda {

// Calls fn(TypeTag<Bits>{}): moving elements needs their size alone.
template <typename Fn>
void VisitSize(DType dtype, Fn&& fn) {
  switch (SizeOf(dtype)) {
    case 8:
      return fn(TypeTag<uint64_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    default:
      return fn(TypeTag<uint16_t>{});
  }
}

}  // namespace caffe::cuda
