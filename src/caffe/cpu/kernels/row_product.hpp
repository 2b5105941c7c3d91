// Products of a few rows with one matrix, again and again, as in the steps of a recurrence: the
// matrix is packed once, and threads multiply rows of their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "caffe/cpu/kernels/pixel_sums.hpp"
#include "caffe/cpu/kernels/vector_tile.hpp"
#include "caffe/cpu/parallel.hpp"
#include "caffe/cpu/processor.hpp"

namespace caffe::cpu {

// to[d] = from[d] in another type.
template <typename From, typename To>
CAFFE_CPU_CLONES void ConvertRow(const From* from, int64_t count, To* to) {
  if constexpr (std::is_same_v<From, To>) {
    std::copy_n(from, count, to);
  } else {
    for (int64_t d = 0; d < count; ++d) to[d] = To(static_cast<Accum<From>>(from[d]));
  }
}

namespace row_product {

// Numbers of X that are adjacent in a column of a panel.
template <typename X>
inline constexpr int64_t kInUnit = sizeof(X) < 4 ? 2 : 1;

template <typename X, typename T>
inline CAFFE_FORCE_INLINE X As(T value) {
  if constexpr (std::is_same_v<X, T>) {
    return value;
  } else {
    return X(static_cast<Accum<T>>(value));
  }
}

#ifdef CAFFE_HAS_PIXEL_SUMS
// Stores kFloatLanes units of each of kBlock columns of a panel, which are `step` bytes apart.
CAFFE_WIDE_VECTORS inline void PackTiles(const char* from, int64_t step, char* to) {
  for (int64_t k = 0; k < kBlock; k += kFloatLanes) {
    VectorTile tile;
    tile.Load(from + k * step, step);
    tile.Transpose();
    tile.Store(to + k * kUnitBytes, kBlock * kUnitBytes);
  }
}
#endif

// Stores units of up to kBlock columns of a panel. Column k is at from + k * column_step, and its
// numbers are adjacent.
template <typename T, typename X>
CAFFE_CPU_CLONES void PackEachUnit(const T* from, int64_t units, int64_t columns,
                                   int64_t column_step, X* to) {
  for (int64_t unit = 0; unit < units; ++unit) {
    for (int64_t k = 0; k < columns; ++k) {
      const T* numbers = from + k * column_step + unit * kInUnit<X>;
      X packed[kInUnit<X>];
      for (int64_t i = 0; i < kInUnit<X>; ++i) packed[i] = As<X>(numbers[i]);
      std::memcpy(static_cast<void*>(to + (unit * kBlock + k) * kInUnit<X>), packed,
                  sizeof(packed));
    }
  }
}

template <typename T, typename X>
void PackColumns(const T* from, int64_t units, int64_t columns, int64_t column_step, X* to) {
  int64_t unit = 0;
#ifdef CAFFE_HAS_PIXEL_SUMS
  static const bool is_wide = HasWideVectors();
  if constexpr (std::is_same_v<T, X> && sizeof(X) * kInUnit<X> == kUnitBytes) {
    for (; is_wide && columns == kBlock && unit + kFloatLanes <= units; unit += kFloatLanes) {
      PackTiles(reinterpret_cast<const char*>(from + unit * kInUnit<X>),
                column_step * static_cast<int64_t>(sizeof(T)),
                reinterpret_cast<char*>(to + unit * kBlock * kInUnit<X>));
    }
  }
#endif
  PackEachUnit(from + unit * kInUnit<X>, units - unit, columns, column_step,
               to + unit * kBlock * kInUnit<X>);
}

// The same for rows whose numbers are adjacent: row i is at from + i * row_step.
template <typename T, typename X>
CAFFE_CPU_CLONES void PackRows(const T* from, int64_t units, int64_t columns, int64_t row_step,
                               X* to) {
  for (int64_t unit = 0; unit < units; ++unit) {
    const T* first = from + unit * kInUnit<X> * row_step;
    const T* last = first + (kInUnit<X> - 1) * row_step;
    X* panel = to + unit * kBlock * kInUnit<X>;
    for (int64_t k = 0; k < columns; ++k) {
      panel[k * kInUnit<X>] = As<X>(first[k]);
      if constexpr (kInUnit<X> == 2) panel[k * 2 + 1] = As<X>(last[k]);
    }
  }
}

}  // namespace row_product

// The rows that are multiplied, and the products: `step` numbers apart.
template <typename N>
struct RowsAt {
  N* data;
  int64_t step;
};

// Sizes of products y = x W, with W (inner,columns), in panels of kBlock columns. X is the type of
// x and of W: float, double, or bfloat16, which needs CanMultiplyPairs(inner).
template <typename X>
struct RowProduct {
  using Sum = Accum<X>;
  static constexpr int64_t kInUnit = row_product::kInUnit<X>;

  int64_t columns = 0, inner = 0;

  int64_t panel() const { return inner * kBlock; }
  int64_t packed() const { return BlocksOf(columns) * panel(); }
  // Numbers of a row of y, which has room for whole panels.
  int64_t row() const { return BlocksOf(columns) * kBlock; }

  // Zeroes all weights, also those that Pack() never stores.
  void Clear(X* packed_weights) const {
    std::memset(static_cast<void*>(packed_weights), 0, static_cast<size_t>(packed()) * sizeof(X));
  }
  // Stores weights. Element (i, k) is from[i * row_step + k * column_step], in rows from
  // `first_row`, a whole number of units, and columns from `first_column` on. One of the steps
  // is 1.
  template <typename T>
  void Pack(const T* from, int64_t rows, int64_t some_columns, int64_t row_step,
            int64_t column_step, int64_t first_row, int64_t first_column, X* to) const {
    const int64_t units = rows / kInUnit;
    for (int64_t k = 0; k < some_columns;) {
      const int64_t column = first_column + k;
      const int64_t count = std::min(kBlock - column % kBlock, some_columns - k);
      X* panel_part =
          to + column / kBlock * panel() + first_row * kBlock + column % kBlock * kInUnit;
      const T* part = from + k * column_step;
      if (row_step == 1) {
        row_product::PackColumns(part, units, count, column_step, panel_part);
      } else {
        row_product::PackRows(part, units, count, row_step, panel_part);
      }
      if (units * kInUnit < rows) {  // one row more
        for (int64_t c = 0; c < count; ++c) {
          panel_part[(units * kBlock + c) * kInUnit] =
              row_product::As<X>(part[units * kInUnit * row_step + c * column_step]);
        }
      }
      k += count;
    }
  }

  // The same, shared by the threads.
  template <typename T>
  void PackByThreads(const T* from, int64_t rows, int64_t some_columns, int64_t row_step,
                     int64_t column_step, int64_t first_row, int64_t first_column, X* to) const {
    ParallelFor((rows + kInUnit - 1) / kInUnit, 1 + kPointwiseGrain / some_columns,
                [&](int64_t begin, int64_t end) {
                  const int64_t first = begin * kInUnit, next = std::min(end * kInUnit, rows);
                  Pack(from + first * row_step, next - first, some_columns, row_step, column_step,
                       first_row + first, first_column, to);
                });
  }

  // y = or += x W, with the first `used` rows of W.
  void Multiply(RowsAt<const X> x, int64_t rows, int64_t used, const X* packed, bool adds,
                RowsAt<Sum> y) const;
  // y = x W; the rows of x are adjacent, those of y row() apart.
  void Multiply(const X* x, int64_t rows, const X* packed, Sum* y) const {
    Multiply({x, inner}, rows, inner, packed, /*adds=*/false, {y, row()});
  }
};

inline bool CanMultiplyPairs(int64_t inner) {
#ifdef CAFFE_HAS_PIXEL_SUMS
  return HasWideVectors() && MultipliesBFloat16() && inner % 2 == 0;
#else
  return inner < 0;
#endif
}

namespace row_product {

// For processors without AVX-512, and doubles: kRows rows at a time.
inline constexpr int64_t kRows = 4;

template <typename X>
CAFFE_CPU_CLONES void MultiplyPanel(RowsAt<const X> x, int64_t rows, int64_t inner, const X* panel,
                                    bool adds, RowsAt<X> y) {
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    X sums[kRows][kBlock] = {};
    for (int64_t r = 0; r < count && adds; ++r)
      std::copy_n(y.data + (first + r) * y.step, kBlock, sums[r]);
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t r = 0; r < count; ++r) {
        const X factor = x.data[(first + r) * x.step + i];
        for (int64_t k = 0; k < kBlock; ++k) sums[r][k] += factor * panel[i * kBlock + k];
      }
    }
    for (int64_t r = 0; r < count; ++r) std::copy_n(sums[r], kBlock, y.data + (first + r) * y.step);
  }
}

#ifdef CAFFE_HAS_PIXEL_SUMS
// Rows in bytes, as pixel_sums.hpp reads them, and the panel that they are multiplied with.
struct UnitRows {
  const char* data;
  int64_t step, units;  // bytes from row to row, and units of a row
  const char* panel;
};

// kCount rows or, in another instance, fewer.
template <typename Sums, int kCount>
inline CAFFE_FORCE_INLINE void SumRows(const UnitRows& x, int64_t first, int64_t count, bool adds,
                                       RowsAt<float> y) {
  if (count < kCount) {
    if constexpr (kCount > 1) SumRows<Sums, kCount - 1>(x, first, count, adds, y);
    return;
  }
  FloatVector sums[kCount][kBlockVectors];
  Unroll<kCount>([&](auto row) CAFFE_FORCE_INLINE {
    Unroll<kBlockVectors>([&](auto v) CAFFE_FORCE_INLINE {
      sums[row][v] = FloatVector{};
      if (adds) Load(y.data + (first + row) * y.step + v * kFloatLanes, sums[row][v]);
    });
  });
  AddProducts<Sums>(x.data + first * x.step, x.step, x.units, x.panel, sums);
  Unroll<kCount>([&](auto row) CAFFE_FORCE_INLINE {
    Unroll<kBlockVectors>([&](auto v) CAFFE_FORCE_INLINE {
      Store(sums[row][v], y.data + (first + row) * y.step + v * kFloatLanes);
    });
  });
}

// Rows in parts of about the same size: a part of one row takes as long as one of four.
template <typename Sums>
inline CAFFE_FORCE_INLINE void SumAllRows(const UnitRows& x, int64_t rows, bool adds,
                                          RowsAt<float> y) {
  const int64_t parts = (rows + kPixels - 1) / kPixels;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = rows * part / parts, next = rows * (part + 1) / parts;
    SumRows<Sums, kPixels>(x, first, next - first, adds, y);
  }
}

CAFFE_WIDE_VECTORS inline void SumAllRows(TypeTag<float>, const UnitRows& x, int64_t rows,
                                          bool adds, RowsAt<float> y) {
  SumAllRows<SumsOfFloats>(x, rows, adds, y);
}
CAFFE_WIDE_VECTORS inline void SumAllRows(TypeTag<bfloat16>, const UnitRows& x, int64_t rows,
                                          bool adds, RowsAt<float> y) {
  SumAllRows<SumsOfPairs>(x, rows, adds, y);
}
#endif

}  // namespace row_product

template <typename X>
void RowProduct<X>::Multiply(RowsAt<const X> x, int64_t rows, int64_t used, const X* packed,
                             bool adds, RowsAt<Sum> y) const {
  for (int64_t block = 0; block < BlocksOf(columns); ++block) {
    const X* panel_begin = packed + block * panel();
    const RowsAt<Sum> to = {y.data + block * kBlock, y.step};
#ifdef CAFFE_HAS_PIXEL_SUMS
    static const bool is_wide = HasWideVectors();
    if constexpr (!std::is_same_v<X, double>) {
      if (is_wide) {
        row_product::SumAllRows(
            TypeTag<X>{},
            {reinterpret_cast<const char*>(x.data), x.step * static_cast<int64_t>(sizeof(X)),
             used / kInUnit, reinterpret_cast<const char*>(panel_begin)},
            rows, adds, to);
        continue;
      }
    }
#endif
    if constexpr (!std::is_same_v<X, bfloat16>)
      row_product::MultiplyPanel(x, rows, used, panel_begin, adds, to);
  }
}

// Calls fn(TypeTag<T>{}, TypeTag<X>{}) with the types of the data and of factors.
template <typename Fn>
decltype(auto) VisitFactors(DType type, bool multiplies_pairs, const Fn& fn) {
  switch (type) {
    case DType::kDouble:
      return fn(TypeTag<double>{}, TypeTag<double>{});
    case DType::kBFloat16:
      if (multiplies_pairs) return fn(TypeTag<bfloat16>{}, TypeTag<bfloat16>{});
      return fn(TypeTag<bfloat16>{}, TypeTag<float>{});
    case DType::kFloat16:
      return fn(TypeTag<float16>{}, TypeTag<float>{});
    default:
      return fn(TypeTag<float>{}, TypeTag<float>{});
  }
}

// The kernel Kernels<T, X> for an op whose data has this type.
template <template <typename, typename> class Kernels, typename Op>
Kernel MakeForFactors(const Op& op, DType type, bool multiplies_pairs) {
  return VisitFactors(type, multiplies_pairs,
                      [&]<typename T, typename X>(TypeTag<T>, TypeTag<X>) -> Kernel {
                        auto kernel = std::make_shared<Kernels<T, X>>(op);
                        return {"", [kernel](const KernelContext& ctx) { kernel->Run(ctx); },
                                kernel->workspace_bytes()};
                      });
}

}  // namespace caffe::cpu
