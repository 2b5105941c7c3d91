// OpenBLAS in our words. The only header that includes it.
#pragma once

#include <cblas.h>

#include <algorithm>
#include <cstdint>

#include "caffe/cpu/parallel.hpp"

namespace caffe::cpu {

// While one exists OpenBLAS uses no threads of its own: ours call it, each for its part. What the
// process had set is restored by the last one, of any thread.
class OneThreadInBlas {
 public:
  OneThreadInBlas();
  ~OneThreadInBlas();
  OneThreadInBlas(const OneThreadInBlas&) = delete;
  OneThreadInBlas& operator=(const OneThreadInBlas&) = delete;
};

// A matrix in memory: elements of a row are adjacent, or with `transposed` those of a column, and
// rows (columns) are `stride` apart.
struct DoubleMatrix {
  const double* data;
  int64_t stride;
  bool transposed = false;
};

// c = or += a b, with c rows x columns, whose rows are `c_stride` apart.
void Dgemm(int64_t rows, int64_t columns, int64_t inner, const DoubleMatrix& a,
           const DoubleMatrix& b, bool accumulates, double* c, int64_t c_stride);

// Whether sizes and strides up to `extent` are numbers that OpenBLAS takes.
bool FitsBlas(int64_t extent);

// Calls fn(task, slot) for each task with OpenBLAS on one thread. Tasks of one slot, of which there
// are at most `slots`, follow each other, so that they can share memory.
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
