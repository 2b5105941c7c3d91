// Common base of Attention and MultiHeadAttention: the options and the op between the products.
#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/layer.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/attention.hpp"
#include "caffe/ops/slide_rows.hpp"

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
    if (!has_cache()) return;
    Require(options_.causal(), "cache_length is ", cache_length(),
            ", but causal is false: rows that come later could not be seen; set causal, or leave "
            "cache_length out");
    Require(
        phase() == TEST, "cache_length is ", cache_length(),
        ", but in phase TRAIN gradients need all rows at once; set cache_length only in the net "
        "that generates, in phase TEST");
  }

 protected:
  using Operands = std::array<Value*, 3>;  // queries, keys and values; if packed, the first only

  const AttentionParameter& options() const { return options_; }
  int64_t heads() const { return options_.num_heads(); }
  int64_t kv_heads() const {
    return options_.num_kv_heads() == 0 ? heads() : int64_t{options_.num_kv_heads()};
  }

  // Rows that stay from one pass to the next (ops/slide_rows.hpp), and a bottom cont (N): 0 where a
  // sequence begins.
  bool has_cache() const { return cache_length() > 0; }
  int64_t cache_length() const { return options_.cache_length(); }
  void RequireCache(const Shape& cont, int64_t items, int64_t rows) const {
    Require(cont == Shape{items}, "the last bottom, cont, has shape ", cont, "; it must be ", items,
            ", a number for each item: 0 where a sequence begins, else 1");
    Require(rows <= cache_length(), "bottom 0 has ", rows,
            " rows of each item, but cache_length is ", cache_length(),
            "; give fewer rows at a time, or raise cache_length");
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
  // Attention of the new rows q to the keys and values of the rows kept so far, these included.
  // `sizes`: those without a cache, with one step from row to row of k and of v.
  void EmitCachedAttention(GraphBuilder& graph, const ops::AttentionSizes& sizes, const Operands& x,
                           Value* mask, Value* cont, Value* y) const {
    const auto slide = [&](int64_t columns, int64_t step, int64_t offset) {
      return ops::SlideRows{sizes.keys, cache_length(), columns, step, offset};
    };
    ops::AttentionSizes cached = sizes;
    cached.packed = false;
    cached.keys = cache_length();
    const int64_t of_keys = cached.k_step(), of_values = cached.v_step();
    EmitAttention(
        graph, cached,
        {x[0],
         Kept(graph, "kept_keys", slide(of_keys, sizes.k_step(), sizes.k_offset()), cont, x[1]),
         Kept(graph, "kept_values", slide(of_values, sizes.v_step(), sizes.v_offset()), cont,
              x[2])},
        Kept(graph, "seen", slide(1, 1, 0), cont, mask), y);
  }
  void EmitAttentionGrad(GraphBuilder& graph, const ops::AttentionSizes& sizes, const Operands& x,
                         Value* mask, Value* y, Value* dy, const Operands& dx) const {
    graph.Emit(ops::AttentionGrad{sizes}, {x[0], x[1], x[2], mask, y, Lse(graph, sizes), dy},
               {dx[0], dx[1], dx[2]});
  }

 private:
  // The last rows that the layer was given, with those of x; null for x: with ones.
  static Value* Kept(GraphBuilder& graph, const char* name, const ops::SlideRows& op, Value* cont,
                     Value* x) {
    const int64_t items = graph.shape(cont)[0];
    Value* rows = graph.State(
        name, op.columns == 1 ? Shape{items, op.length} : Shape{items, op.length, op.columns});
    graph.Emit(op, {rows, cont, x}, {rows});
    return rows;
  }
  static Value* Lse(GraphBuilder& graph, const ops::AttentionSizes& sizes) {
    return graph.Saved("lse", Shape{sizes.items, sizes.heads, sizes.queries});
  }

  const AttentionParameter options_;
};

}  // namespace caffe
