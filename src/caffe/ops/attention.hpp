// Attention: averages of values, weighted by how well keys fit queries.
#pragma once

#include <algorithm>
#include <limits>
#include <string>

#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Sizes of an attention. Its operands are rows of numbers, head after head: `queries` rows of q and
// `keys` rows of k and v for each item. If `packed`, the numbers of q, k and v are adjacent in one
// row of input kQ, and `queries` is `keys`. Of the heads of queries, heads / kv_heads share a head
// of keys and values.
//
// If `causal`, query t sees the keys up to t + keys - queries. A mask (items x keys) has 0 for keys
// that no query sees.
struct AttentionSizes {
  int64_t items = 0, queries = 0, keys = 0;
  int64_t heads = 1, kv_heads = 1;
  int64_t width = 0, value_width = 0;  // of a head's query and key, and of its value
  bool packed = false, causal = false;
  double scale = 1;

  // The number of heads of queries for each of keys.
  CAFFE_HOST_DEVICE int64_t group() const { return heads / kv_heads; }
  // Numbers from one row to the next, and before the first one of a head.
  CAFFE_HOST_DEVICE int64_t q_step() const { return packed ? packed_step() : heads * width; }
  CAFFE_HOST_DEVICE int64_t k_step() const { return packed ? packed_step() : kv_heads * width; }
  CAFFE_HOST_DEVICE int64_t v_step() const {
    return packed ? packed_step() : kv_heads * value_width;
  }
  CAFFE_HOST_DEVICE int64_t y_step() const { return heads * value_width; }
  CAFFE_HOST_DEVICE int64_t k_offset() const { return packed ? heads * width : 0; }
  CAFFE_HOST_DEVICE int64_t v_offset() const { return packed ? (heads + kv_heads) * width : 0; }
  // The number of keys that the query may see, if no mask hides them: the first ones.
  CAFFE_HOST_DEVICE int64_t KeysOf(int64_t query) const {
    return causal ? std::clamp<int64_t>(query + 1 + keys - queries, 0, keys) : keys;
  }

  std::string Attributes() const {
    return StrCat(items, "x", queries, "x", keys, ", ", heads,
                  kv_heads == heads ? "" : StrCat("/", kv_heads), " heads of ", width,
                  causal ? ", causal" : "", packed ? ", packed" : "");
  }
  double ProductFlops(double matrices_of_width, double matrices_of_value_width) const {
    const double pairs = static_cast<double>(items * heads) * static_cast<double>(queries) *
                         static_cast<double>(keys) * (causal ? 0.5 : 1);
    return 2 * pairs *
           (matrices_of_width * static_cast<double>(width) +
            matrices_of_value_width * static_cast<double>(value_width));
  }

 private:
  CAFFE_HOST_DEVICE int64_t packed_step() const {
    return (heads + kv_heads) * width + kv_heads * value_width;
  }
};

// (q, k, v, mask) -> (y, lse), of each head:
//   s = scale q k^T;  lse = log(sum of exp(s) over the keys that the query sees);  y = exp(s - lse)
//   v
// A query that sees no key has y = 0 and lse = kSeesNothing. lse (items x heads x queries) is what
// AttentionGrad reads. The matrix s is never stored as a whole.
struct Attention : AttentionSizes {
  static constexpr std::string_view kName = "Attention";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kQ, kK, kV, kMask };
  enum Output { kY, kLse };
  static constexpr float kSeesNothing = std::numeric_limits<float>::max();
  static constexpr OperandSet kExactInputs = {kMask};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(1, 1);
  }
};

// (q, k, v, mask, y, lse, dy) -> (dq, dk, dv); if packed, the gradients are in dq, too.
struct AttentionGrad : AttentionSizes {
  static constexpr std::string_view kName = "AttentionGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kQ, kK, kV, kMask, kY, kLse, kDy };
  enum Output { kDq, kDk, kDv };
  static constexpr OperandSet kExactInputs = {kMask, kLse};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(3, 2);
  }
};

}  // namespace caffe::ops
