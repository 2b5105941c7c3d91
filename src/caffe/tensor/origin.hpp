// Origin: where the values of a tensor can be read again, so that they need not stay in memory.
#pragma once

#include <cstdint>

#include "caffe/dtype.hpp"

namespace caffe {

// A region of a file, or a filler with its seed. Gives the same values each time, to several
// threads at once.
class Origin {
 public:
  virtual ~Origin() = default;
  // Writes elements [first, first + count), in row-major order, to `to` in type `dtype` (float or
  // double). Throws IoError if a file has changed.
  virtual void Read(int64_t first, int64_t count, DType dtype, void* to) const = 0;
  // True if reading the values in parts costs no more than reading them at once.
  virtual bool reads_parts() const = 0;
};

}  // namespace caffe
