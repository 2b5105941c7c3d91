// Wrapper of OpenBLAS. The only header that includes it.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cstdint>

#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

// While an object exists, OpenBLAS uses one thread: our threads call it, each for its part. The
// last object to be destroyed, in any thread, restores the process's setting.
class OneThreadInBlas {
 public:
  OneThreadInBlas();
  ~OneThreadInBlas();
  OneThreadInBlas(const OneThreadInBlas&) = delete;
  OneThreadInBlas& operator=(const OneThreadInBlas&) = delete;
};

// A matrix in memory: elements of a row are adjacent, or with `transposed` those of a column. Rows
// (or columns) are `stride` apart.
struct DoubleMatrix {
  const double* data;
  int64_t stride;
  bool transposed = false;
};

// c = or += a b, with c rows x columns; its rows are `c_stride` apart.
void Dgemm(int64_t rows, int64_t columns, int64_t inner, const DoubleMatrix& a,
           const DoubleMatrix& b, bool accumulates, double* c, int64_t c_stride);

// True if OpenBLAS can represent sizes and strides up to `extent`.
bool FitsBlas(int64_t extent);

// Calls fn(task, slot) for each task, with OpenBLAS on one thread. Tasks of the same slot run one
// after the other, so they can share memory; there are at most `slots` slots.
template <typename Fn>
void ForBlasTasks(int64_t tasks, int64_t slots, const Fn& fn) {
  const OneThreadInBlas one_thread;
  ParallelFor(std::min(slots, tasks), 1, [&](int64_t begin, int64_t end) {
    for (int64_t slot = begin; slot < end; ++slot) {
      for (int64_t task = slot; task < tasks; task += slots) fn(task, slot);
    }
  });
}

}  // namespace caffe::cpu
