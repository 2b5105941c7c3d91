#include "caffe/cpu/portable/panels.hpp"

namespace caffe::cpu {
namespace {

CAFFE_CPU_CLONES void MultiplyFour(const float* a, const float* b, const float* c, const float* d,
                                   const float* panel, int64_t inner,
                                   float (&sums)[kTileRows][kPanel]) {
  float of_a[kPanel] = {}, of_b[kPanel] = {}, of_c[kPanel] = {}, of_d[kPanel] = {};
  for (int64_t k = 0; k < inner; ++k, panel += kPanel) {
    for (int64_t j = 0; j < kPanel; ++j) {
      of_a[j] += a[k] * panel[j];
      of_b[j] += b[k] * panel[j];
      of_c[j] += c[k] * panel[j];
      of_d[j] += d[k] * panel[j];
    }
  }
  for (int64_t j = 0; j < kPanel; ++j)
    sums[0][j] = of_a[j], sums[1][j] = of_b[j], sums[2][j] = of_c[j], sums[3][j] = of_d[j];
}

CAFFE_CPU_CLONES void MultiplyOne(const float* a, const float* panel, int64_t inner,
                                  float (&sums)[kPanel]) {
  float of_a[kPanel] = {};
  for (int64_t k = 0; k < inner; ++k, panel += kPanel) {
    for (int64_t j = 0; j < kPanel; ++j) of_a[j] += a[k] * panel[j];
  }
  for (int64_t j = 0; j < kPanel; ++j) sums[j] = of_a[j];
}

}  // namespace

void MultiplyPanel(const float* const (&rows)[kTileRows], int64_t num_rows, const float* panel,
                   int64_t inner, float (&sums)[kTileRows][kPanel]) {
  if (num_rows == kTileRows) {
    MultiplyFour(rows[0], rows[1], rows[2], rows[3], panel, inner, sums);
    return;
  }
  for (int64_t r = 0; r < num_rows; ++r) MultiplyOne(rows[r], panel, inner, sums[r]);
}

}  // namespace caffe::cpu
