// Matrix products of floats for processors without a library: weights are in panels of 16 columns,
// and four rows at a time are multiplied in registers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "caffe/core/cpu_clones.hpp"

namespace caffe::cpu {

inline constexpr int64_t kPanel = 16;
inline constexpr int64_t kTileRows = 4;

inline int64_t NumPanels(int64_t columns) {
  return (columns + kPanel - 1) / kPanel;
}

// sums[r][j] = the sum over k < inner of rows[r][k] * panel[k][j]
void MultiplyPanel(const float* const (&rows)[kTileRows], int64_t num_rows, const float* panel,
                   int64_t inner, float (&sums)[kTileRows][kPanel]);

// Packs a matrix of `columns` columns with elements at(k, column), panel by panel and row by row;
// columns beyond the last are 0.
template <typename At>
void PackPanels(int64_t inner, int64_t columns, const At& at, float* panels) {
  for (int64_t panel = 0; panel < NumPanels(columns); ++panel) {
    const int64_t width = std::min(kPanel, columns - panel * kPanel);
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t j = 0; j < kPanel; ++j) *panels++ = j < width ? at(k, panel * kPanel + j) : 0.0f;
    }
  }
}

}  // namespace caffe::cpu
