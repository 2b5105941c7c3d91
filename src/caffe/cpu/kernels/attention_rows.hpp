// The operands of an attention by item and head, and the steps of its kernels between products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "caffe/cpu/kernels/fast_math.hpp"
#include "caffe/cpu/kernels/row_product.hpp"
#include "caffe/cpu/kernels/simd_math.hpp"
#include "caffe/ops/attention.hpp"
#include "caffe/ops/kernel.hpp"

namespace caffe::cpu {

// Queries are computed kBlock at a time: their scores are a matrix with a row for each key and a
// column for each query, which is also a panel of row_product.hpp.
static_assert(kBlock == 32);

template <typename A>
inline constexpr A kInfinity = std::numeric_limits<A>::infinity();
template <typename A>
inline constexpr A kSeesNothing = static_cast<A>(ops::Attention::kSeesNothing);

// The rows of one head of one item in an operand.
template <typename N>
struct HeadRows {
  N* first = nullptr;
  int64_t step = 0;
  N* Row(int64_t i) const { return first + i * step; }
};

// Where the heads of the operands of an attention are.
template <typename T>
struct HeadsOf {
  const ops::AttentionSizes& op;

  template <typename N>
  HeadRows<N> Q(N* q, int64_t item, int64_t head) const {
    return {q + item * op.queries * op.q_step() + head * op.width, op.q_step()};
  }
  template <typename N>
  HeadRows<N> K(N* k, int64_t item, int64_t kv_head) const {
    return {k + item * op.keys * op.k_step() + op.k_offset() + kv_head * op.width, op.k_step()};
  }
  template <typename N>
  HeadRows<N> V(N* v, int64_t item, int64_t kv_head) const {
    return {v + item * op.keys * op.v_step() + op.v_offset() + kv_head * op.value_width,
            op.v_step()};
  }
  template <typename N>
  HeadRows<N> Y(N* y, int64_t item, int64_t head) const {
    return {y + item * op.queries * op.y_step() + head * op.value_width, op.y_step()};
  }
};

// exp(x) by FastExp(), or of a double.
inline CAFFE_FORCE_INLINE float ExpOf(float x) {
  return FastExp(x);
}
inline CAFFE_FORCE_INLINE double ExpOf(double x) {
  return ::exp(x);
}

// The first of the kBlock queries from `query` on that sees a key; kBlock if none does. `mask` (may
// be null) is the item's.
template <typename M>
int64_t FirstSeeing(const ops::AttentionSizes& op, int64_t query, int64_t key, const M* mask) {
  if (mask != nullptr && mask[key] == M(0)) return kBlock;
  // Key k is seen by the queries from k - (keys - queries) on.
  return op.causal ? std::clamp<int64_t>(key - (op.keys - op.queries) - query, 0, kBlock) : 0;
}

// scores = scale * scores, or -infinity where the query does not see the key: row `key` has the
// scores of the queries from `query` on. `largest` has an entry for each column; that of a column
// that sees no key is 0.
template <typename A, typename M>
CAFFE_CPU_CLONES void ScaleAndHide(const ops::AttentionSizes& op, int64_t query, int64_t keys,
                                   const M* mask, A* scores, A* largest) {
  const A scale = static_cast<A>(op.scale);
  std::fill_n(largest, kBlock, -kInfinity<A>);
  for (int64_t k = 0; k < keys; ++k) {
    A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) row[r] *= scale;
    std::fill_n(row, FirstSeeing(op, query, k, mask), -kInfinity<A>);
    for (int64_t r = 0; r < kBlock; ++r) largest[r] = row[r] > largest[r] ? row[r] : largest[r];
  }
  for (int64_t r = 0; r < kBlock; ++r) largest[r] = largest[r] == -kInfinity<A> ? A(0) : largest[r];
}

// Rows of kBlock numbers, as many as a unit of X has.
template <typename A, typename X>
using UnitOfRows = A[RowProduct<X>::kInUnit][kBlock];

// Stores them as units of a panel.
template <typename A, typename X>
inline CAFFE_FORCE_INLINE void StoreUnits(const UnitOfRows<A, X>& rows, X* to) {
  if constexpr (std::is_same_v<X, bfloat16>) {
    for (int64_t r = 0; r < kBlock; ++r) {
      const uint32_t pair = bfloat16(rows[0][r]).bits | uint32_t{bfloat16(rows[1][r]).bits} << 16;
      std::memcpy(static_cast<void*>(to + 2 * r), &pair, sizeof(pair));
    }
  } else {
    for (int64_t r = 0; r < kBlock; ++r) to[r] = X(rows[0][r]);
  }
}

// Stores exp(score - largest of the column) as a panel: units of several keys are adjacent, and
// keys beyond the last are 0. `sums` are those of the columns.
template <typename A, typename X>
CAFFE_CPU_CLONES void Exponentials(int64_t keys, const A* scores, const A* largest, A* sums,
                                   X* panel) {
  constexpr int64_t kInUnit = RowProduct<X>::kInUnit;
  std::fill_n(sums, kBlock, A(0));
  for (int64_t first = 0; first < keys; first += kInUnit) {
    UnitOfRows<A, X> rows = {};
    for (int64_t i = 0; i < std::min(kInUnit, keys - first); ++i) {
      const A* row = scores + (first + i) * kBlock;
      for (int64_t r = 0; r < kBlock; ++r) rows[i][r] = ExpOf(row[r] - largest[r]);
      for (int64_t r = 0; r < kBlock; ++r) sums[r] += rows[i][r];
    }
    StoreUnits<A, X>(rows, panel + first * kBlock);
  }
}

// The results of backward between its products, of a block of queries: the weights exp(scale *
// score - lse), 0 where the query does not see the key, and the gradients of the products of
// queries and keys, weight * (dweight - delta) * scale. Both have a row for each key; `dpanel` is
// the second as a panel, whose keys beyond the last are 0.
template <typename A, typename X>
struct BlockWeights {
  const A *lse, *delta;
  X *weights, *dscores, *dpanel;
};

template <typename A, typename X, typename M>
CAFFE_CPU_CLONES void WeightGradients(const ops::AttentionSizes& op, int64_t query, int64_t keys,
                                      const M* mask, const A* scores, const A* dweights,
                                      const BlockWeights<A, X>& to) {
  constexpr int64_t kInUnit = RowProduct<X>::kInUnit;
  const A scale = static_cast<A>(op.scale);
  for (int64_t first = 0; first < keys; first += kInUnit) {
    UnitOfRows<A, X> rows = {};
    for (int64_t i = 0; i < std::min(kInUnit, keys - first); ++i) {
      const int64_t at = (first + i) * kBlock;
      A weights[kBlock];
      for (int64_t r = 0; r < kBlock; ++r) weights[r] = ExpOf(scale * scores[at + r] - to.lse[r]);
      std::fill_n(weights, FirstSeeing(op, query, first + i, mask), A(0));
      for (int64_t r = 0; r < kBlock; ++r)
        rows[i][r] = weights[r] * (dweights[at + r] - to.delta[r]) * scale;
      for (int64_t r = 0; r < kBlock; ++r) to.weights[at + r] = X(weights[r]);
      for (int64_t r = 0; r < kBlock; ++r) to.dscores[at + r] = X(rows[i][r]);
    }
    StoreUnits<A, X>(rows, to.dpanel + first * kBlock);
  }
}

// The sum of a[d] * b[d].
template <typename T>
CAFFE_CPU_CLONES Accum<T> DotOfRows(const T* a, const T* b, int64_t count) {
  constexpr int64_t kAtOnce = 32;  // an addition waits for the one before
  Accum<T> sums[kAtOnce] = {}, sum = 0;
  int64_t d = 0;
  for (; d + kAtOnce <= count; d += kAtOnce) {
    for (int64_t k = 0; k < kAtOnce; ++k)
      sums[k] += static_cast<Accum<T>>(a[d + k]) * static_cast<Accum<T>>(b[d + k]);
  }
  for (; d < count; ++d) sum += static_cast<Accum<T>>(a[d]) * static_cast<Accum<T>>(b[d]);
  for (int64_t half = kAtOnce / 2; half > 0; half /= 2) {
    for (int64_t k = 0; k < half; ++k) sums[k] += sums[k + half];
  }
  return sum + sums[0];
}

#ifdef CAFFE_HAS_PIXEL_SUMS
// Stores the columns [first, first + count) of kFloatLanes rows of a matrix as below.
template <typename T>
CAFFE_WIDE_VECTORS void StoreColumnTile(const float* from, int64_t first, int64_t count,
                                        const float* factors, const HeadRows<T>& to) {
  VectorTile tile;
  tile.Load(reinterpret_cast<const char*>(from + first), kBlock * kUnitBytes);
  tile.Transpose();
  Unroll<kFloatLanes>([&](auto r) CAFFE_FORCE_INLINE {
    if (r < count) Store(tile.rows[r] * factors[first + r], to.Row(first + r));
  });
}
#endif

// Stores the first columns of a matrix of kBlock columns and `width` rows as rows of a head, column
// r times factors[r].
template <typename A, typename T>
void StoreColumns(const A* from, int64_t width, int64_t columns, const A* factors,
                  const HeadRows<T>& to) {
  int64_t row = 0;
#ifdef CAFFE_HAS_PIXEL_SUMS
  static const bool is_wide = HasWideVectors();
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bfloat16>) {
    for (; is_wide && row + kFloatLanes <= width; row += kFloatLanes) {
      for (int64_t first = 0; first < columns; first += kFloatLanes) {
        StoreColumnTile(from + row * kBlock, first, columns - first, factors,
                        HeadRows<T>{to.first + row, to.step});
      }
    }
  }
#endif
  for (int64_t r = 0; r < columns; ++r) {
    for (int64_t d = row; d < width; ++d) to.Row(r)[d] = T(factors[r] * from[d * kBlock + r]);
  }
}

// Rows of a head as adjacent rows, and as adjacent columns, which are `step` apart.
template <typename T, typename X>
void CopyRows(const HeadRows<const T>& from, int64_t rows, int64_t width, X* to) {
  for (int64_t i = 0; i < rows; ++i) ConvertRow(from.Row(i), width, to + i * width);
}
template <typename T, typename X>
CAFFE_CPU_CLONES void CopyColumns(const HeadRows<const T>& from, int64_t rows, int64_t width,
                                  int64_t step, X* to) {
  constexpr int64_t kTile = 16;
  for (int64_t first = 0; first < rows; first += kTile) {
    const int64_t next = std::min(first + kTile, rows);
    for (int64_t d = 0; d < width; ++d) {
      for (int64_t i = first; i < next; ++i) to[d * step + i] = row_product::As<X>(from.Row(i)[d]);
    }
  }
}

}  // namespace caffe::cpu
