// The operands of an attention by item and head, and the steps of its kernels between products.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "caffe/cpu/kernels/row_product.hpp"
#include "caffe/cpu/kernels/vector_math.hpp"
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

// scores = scale * scores, or -infinity where the query does not see the key: row `key` has the
// scores of the queries from `query` on. `mask` (may be null) is the item's.
template <typename A, typename M>
CAFFE_CPU_CLONES void ScaleAndHide(const ops::AttentionSizes& op, int64_t query, int64_t keys,
                                   const M* mask, A* scores) {
  const A scale = static_cast<A>(op.scale);
  // Key k is seen by the queries from k - ahead on.
  const int64_t ahead = op.causal ? op.keys - op.queries : op.keys;
  for (int64_t k = 0; k < keys; ++k) {
    A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) row[r] *= scale;
    const bool is_hidden = mask != nullptr && mask[k] == M(0);
    const int64_t first = is_hidden ? kBlock : std::clamp<int64_t>(k - ahead - query, 0, kBlock);
    for (int64_t r = 0; r < first; ++r) row[r] = -kInfinity<A>;
  }
}

// Turns scores into exp(score - largest of the column); sums and largest have an entry for each
// column. The largest of a column that sees no key is 0.
template <typename A>
CAFFE_CPU_CLONES void Exponentials(int64_t keys, A* scores, A* largest, A* sums) {
  std::fill_n(largest, kBlock, -kInfinity<A>);
  for (int64_t k = 0; k < keys; ++k) {
    const A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) largest[r] = row[r] > largest[r] ? row[r] : largest[r];
  }
  for (int64_t r = 0; r < kBlock; ++r) largest[r] = largest[r] == -kInfinity<A> ? A(0) : largest[r];
  for (int64_t k = 0; k < keys; ++k) {
    A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) row[r] -= largest[r];
  }
  Exp(scores, keys * kBlock, scores);
  std::fill_n(sums, kBlock, A(0));
  for (int64_t k = 0; k < keys; ++k) {
    const A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) sums[r] += row[r];
  }
}

// scores = the weights exp(score - lse).
template <typename A>
CAFFE_CPU_CLONES void Weights(int64_t keys, const A* lse, A* scores) {
  for (int64_t k = 0; k < keys; ++k) {
    A* row = scores + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) row[r] -= lse[r];
  }
  Exp(scores, keys * kBlock, scores);
}

// The gradients of the products of queries and keys: weight * (dweight - delta) * scale, in place
// of dweight.
template <typename A>
CAFFE_CPU_CLONES void ScoreGradients(int64_t keys, A scale, const A* weights, const A* delta,
                                     A* dweights) {
  for (int64_t k = 0; k < keys; ++k) {
    const A* weight = weights + k * kBlock;
    A* d = dweights + k * kBlock;
    for (int64_t r = 0; r < kBlock; ++r) d[r] = weight[r] * (d[r] - delta[r]) * scale;
  }
}

// A matrix of kBlock columns as the panel of a product: units of several rows are adjacent. Rows
// beyond the last are 0.
template <typename A, typename X>
CAFFE_CPU_CLONES void ToPanel(const A* from, int64_t rows, X* panel) {
  constexpr int64_t kInUnit = RowProduct<X>::kInUnit;
  for (int64_t unit = 0; unit * kInUnit < rows; ++unit) {
    for (int64_t i = 0; i < kInUnit; ++i) {
      const bool is_beyond = unit * kInUnit + i >= rows;
      const A* row = from + (unit * kInUnit + i) * kBlock;
      X* to = panel + unit * kInUnit * kBlock + i;
      for (int64_t r = 0; r < kBlock; ++r) to[r * kInUnit] = is_beyond ? X(0.0F) : X(row[r]);
    }
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
      for (int64_t i = first; i < next; ++i)
        to[d * step + i] = X(static_cast<Accum<T>>(from.Row(i)[d]));
    }
  }
}

}  // namespace caffe::cpu
