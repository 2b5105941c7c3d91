// Common base of Attention and MultiHeadAttention: the options and the op between the products.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/attention.hpp"

namespace caffe {

class AttentionBase : public Layer {
 public:
  explicit AttentionBase(const LayerParameter& param)
      : Layer(param), options_(param.attention_param()) {
    Require(heads() >= 1 && heads() % kv_heads() == 0, "there are ", heads(),
            " heads of queries (num_heads) and ", kv_heads(),
            " of keys and values (num_kv_heads); the first must be a multiple of the second");
    Require(std::isfinite(options_.scale()) && options_.scale() >= 0, "scale is ", options_.scale(),
            "; it must be above 0, or 0 for 1 / sqrt(numbers of a head)");
  }

 protected:
  using Operands = std::array<Value*, 3>;  // queries, keys and values; if packed, the first only

  const AttentionParameter& options() const { return options_; }
  int64_t heads() const { return options_.num_heads(); }
  int64_t kv_heads() const {
    return options_.num_kv_heads() == 0 ? heads() : int64_t{options_.num_kv_heads()};
  }

  ops::AttentionSizes Sizes(int64_t items, int64_t queries, int64_t keys, int64_t width) const {
    ops::AttentionSizes sizes;
    sizes.items = items;
    sizes.queries = queries;
    sizes.keys = keys;
    sizes.heads = heads();
    sizes.kv_heads = kv_heads();
    sizes.width = sizes.value_width = width;
    sizes.causal = options_.causal();
    sizes.scale =
        options_.scale() > 0 ? double{options_.scale()} : 1 / std::sqrt(static_cast<double>(width));
    return sizes;
  }

  static void RequireMask(const Shape& mask, int64_t items, int64_t keys) {
    Require(mask == (Shape{items, keys}), "the mask has shape ", mask, "; it must be ", items, "x",
            keys, ", a number for each key of each item");
  }

  void EmitAttention(GraphBuilder& graph, const ops::AttentionSizes& sizes, const Operands& x,
                     Value* mask, Value* y) const {
    graph.Emit(ops::Attention{sizes}, {x[0], x[1], x[2], mask},
               {y, graph.with_backward() ? Lse(graph, sizes) : nullptr});
  }
  void EmitAttentionGrad(GraphBuilder& graph, const ops::AttentionSizes& sizes, const Operands& x,
                         Value* mask, Value* y, Value* dy, const Operands& dx) const {
    graph.Emit(ops::AttentionGrad{sizes}, {x[0], x[1], x[2], mask, y, Lse(graph, sizes), dy},
               {dx[0], dx[1], dx[2]});
  }

 private:
  static Value* Lse(GraphBuilder& graph, const ops::AttentionSizes& sizes) {
    return graph.Saved("lse", Shape{sizes.items, sizes.heads, sizes.queries});
  }

  const AttentionParameter options_;
};

}  // namespace caffe
