// For elements that are moved but not interpreted.
#pragma once

#include "caffe/dtype.hpp"

namespace caffe {

// Calls fn(TypeTag<Bits>{}) with a type of the same size, which is all that moving requires.
template <typename Fn>
void VisitSize(DType dtype, Fn&& fn) {
  switch (SizeOf(dtype)) {
    case 8:
      return fn(TypeTag<uint64_t>{});
    case 4:
      return fn(TypeTag<uint32_t>{});
    case 2:
      return fn(TypeTag<uint16_t>{});
    default:
      return fn(TypeTag<uint8_t>{});
  }
}

}  // namespace caffe
