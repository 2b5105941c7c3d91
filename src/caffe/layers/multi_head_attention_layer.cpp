#include <tuple>

#include "caffe/layer_factory.hpp"
#include "caffe/layers/attention_base.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/rotary.hpp"

namespace caffe {
namespace {

// Attention (Vaswani et al. 2017) between rows of C numbers and themselves, or a context. Bottoms:
// x (N,T,C), optionally a context (N,S,K), optionally a mask (N,S), which is 0 for rows that nobody
// sees, and with cache_length cont (N). Top: (N,T,C). A head has D = C / num_heads numbers.
//
// Parameters: W_qkv (H D + 2 Hk D,C), b_qkv, W_o (C,C), b_o; with a context W_q (C,C), b_q, W_kv (2
// Hk D,K), b_kv, W_o, b_o. Rows are ordered q, k, v.
class MultiHeadAttentionLayer final : public AttentionBase {
 public:
  explicit MultiHeadAttentionLayer(const LayerParameter& param) : AttentionBase(param) {
    const float base = options().rotary_base();
    Require(base == 0 || (base > 1 && std::isfinite(base)), "rotary_base is ", base,
            "; it must be above 1, or 0 for no rotation");
    Require(options().bias_term() || !options().has_bias_filler(),
            "bias_term is false, but there is a bias_filler; leave out one");
  }

  LayerTraits traits() const override {
    return {.min_bottoms = has_cache() ? 2 : 1, .max_bottoms = 3, .num_tops = 1};
  }
  // A mask's gradient is 0: a small change of a number hides or shows no row.
  bool AllowForceBackward(int bottom) const override { return bottom == 0 || !has_cache(); }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape& x = bottoms[0];
    Require(x.num_axes() == 3, "bottom 0 has shape ", x, "; it must be items x rows x numbers");
    Require(x[2] % heads() == 0, "the rows of bottom 0 (", x, ") cannot be divided into ", heads(),
            " heads (num_heads)");
    Require(!has_rotation() || x[2] / heads() % 2 == 0, "heads have ", x[2] / heads(),
            " numbers; to be turned (rotary_base) they must have an even number");
    const Bottoms which(bottoms, has_cache());
    if (has_cache()) {
      RequireCache(bottoms.back(), x[0], x[1]);
      Require(which.context < 0, "cache_length is ", cache_length(), ", but bottom ", which.context,
              " (", bottoms[std::max(which.context, 0)],
              ") is a context, whose keys stay the same; leave one of them out");
    }
    if (which.context >= 0) {
      const Shape& context = bottoms[which.context];
      Require(context[0] == x[0], "the context has shape ", context, "; it must begin with the ",
              x[0], " items of bottom 0");
    }
    Require(which.context >= 0 || which.num_others < 2, "bottom 1 has shape ",
            bottoms[bottoms.size() > 1 ? 1 : 0],
            "; a context must be items x rows x numbers, a mask items x rows");
    if (which.mask >= 0) {
      const Shape& seen = bottoms[which.context >= 0 ? which.context : 0];
      RequireMask(bottoms[which.mask], seen[0], seen[1]);
    }
    return {x};
  }

  std::vector<ParamDeclaration> Params(const std::vector<Shape>& bottoms) const override {
    const int64_t columns = bottoms[0][2], width = columns / heads();
    std::vector<ParamDeclaration> params;
    const auto add = [&](int64_t outputs, int64_t inputs) {
      params.push_back({Shape{outputs, inputs}, options().weight_filler()});
      if (options().bias_term()) params.push_back({Shape{outputs}, options().bias_filler()});
    };
    if (const Bottoms which(bottoms, has_cache()); which.context >= 0) {
      add(columns, columns);
      add(2 * kv_heads() * width, bottoms[which.context][2]);
    } else {
      add(columns + 2 * kv_heads() * width, columns);
    }
    add(columns, columns);
    return params;
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Call call(*this, graph);
    const Operands x = EmitOperands(graph, call);
    if (call.cont != nullptr) {
      Value* q = graph.Scratch("q", graph.shape(graph.bottom(0)));
      graph.Emit(ops::SliceOf{.axis = 2, .offset = 0}, {x[0]}, {q});
      EmitCachedAttention(graph, call.sizes, {q, x[0], x[0]}, call.mask, call.cont,
                          Heads(graph, call));
    } else {
      EmitAttention(graph, call.sizes, x, call.mask, Heads(graph, call));
    }
    EmitProduct(graph, call.products.back(), Heads(graph, call), graph.top(0));
  }

  void EmitBackward(GraphBuilder& graph) const override {
    const Call call(*this, graph);
    Value* dheads = graph.Scratch("dheads", graph.shape(graph.bottom(0)));
    EmitProductGrad(graph, call.products.back(), Heads(graph, call), graph.top_diff(0), dheads);
    const Operands x = SavedOperands(graph, call);
    Operands dx = {};
    for (size_t i = 0; i < dx.size(); ++i) {
      if (x[i] != nullptr) dx[i] = graph.Scratch(StrCat("doperand", i), graph.shape(x[i]));
    }
    EmitAttentionGrad(graph, call.sizes, x, call.mask, Heads(graph, call), dheads, dx);
    if (call.sizes.packed) {
      EmitProductGrad(graph, call.products[0], graph.bottom(0),
                      Turned(graph, call, "dqkv", dx[0], heads() + kv_heads(), true),
                      graph.bottom_diff(0));
      return;
    }
    EmitProductGrad(graph, call.products[0], graph.bottom(0),
                    Turned(graph, call, "dq", dx[0], heads(), true), graph.bottom_diff(0));
    Value* dkv =
        graph.Scratch("dkv", Shape{call.sizes.items, call.sizes.keys, 2 * call.sizes.k_step()});
    graph.Emit(ops::Concat{.axis = 2}, {Turned(graph, call, "dk", dx[1], kv_heads(), true), dx[2]},
               {dkv});
    EmitProductGrad(graph, call.products[1], call.context, dkv,
                    graph.bottom_diff(call.context_bottom));
  }

 private:
  // Indices of the optional bottoms; -1: absent. With a cache the last bottom is cont.
  struct Bottoms {
    int context = -1, mask = -1, num_others;

    Bottoms(const std::vector<Shape>& bottoms, bool has_cache)
        : num_others(static_cast<int>(bottoms.size()) - (has_cache ? 2 : 1)) {
      for (int i = 1; i <= num_others; ++i)
        (bottoms[i].num_axes() == 3 && context < 0 ? context : mask) = i;
    }
  };
  // y = x W^T + b for rows of x; b follows W.
  struct Product {
    int param;
    int64_t rows, columns, inner;
  };
  // The sizes, operands and products of a pass.
  struct Call {
    ops::AttentionSizes sizes;
    int context_bottom = -1;
    Value *context = nullptr, *mask = nullptr, *cont = nullptr;
    std::vector<Product> products;

    Call(const MultiHeadAttentionLayer& layer, const GraphBuilder& graph) {
      std::vector<Shape> shapes;
      for (int i = 0; i < graph.num_bottoms(); ++i) shapes.push_back(graph.shape(graph.bottom(i)));
      const Bottoms which(shapes, layer.has_cache());
      if (layer.has_cache()) cont = graph.bottom(graph.num_bottoms() - 1);
      const Shape& x = shapes[0];
      const Shape& seen = shapes[which.context >= 0 ? which.context : 0];
      sizes = layer.Sizes(x[0], x[1], seen[1], x[2] / layer.heads());
      sizes.packed = which.context < 0;
      context_bottom = which.context;
      if (which.context >= 0) context = graph.bottom(which.context);
      if (which.mask >= 0) mask = graph.bottom(which.mask);
      const int step = layer.options().bias_term() ? 2 : 1;
      const int64_t rows = x[0] * x[1], of_kv = 2 * layer.kv_heads() * sizes.width;
      products.push_back({0, rows, sizes.packed ? x[2] + of_kv : x[2], x[2]});
      if (!sizes.packed) products.push_back({step, x[0] * seen[1], of_kv, seen[2]});
      products.push_back({static_cast<int>(products.size()) * step, rows, x[2], x[2]});
    }
  };

  bool has_rotation() const { return options().rotary_base() > 0; }

  // The operands of the op, as forward makes them and backward reads them again.
  Operands EmitOperands(GraphBuilder& graph, const Call& call) const {
    const Operands x = SavedOperands(graph, call);
    const auto [items, queries, keys] =
        std::tuple(call.sizes.items, call.sizes.queries, call.sizes.keys);
    const auto scratch = [&](const char* name, int64_t rows, int64_t columns) {
      return graph.Scratch(name, Shape{items, rows, columns});
    };
    if (call.sizes.packed) {
      Value* made = has_rotation() ? scratch("qkv_made", queries, call.sizes.q_step()) : x[0];
      EmitProduct(graph, call.products[0], graph.bottom(0), made);
      EmitRotary(graph, call, made, heads() + kv_heads(), false, x[0]);
      return x;
    }
    Value* q = has_rotation() ? scratch("q_made", queries, call.sizes.q_step()) : x[0];
    EmitProduct(graph, call.products[0], graph.bottom(0), q);
    EmitRotary(graph, call, q, heads(), false, x[0]);
    const int64_t columns = call.sizes.k_step();
    Value* kv = scratch("kv", keys, 2 * columns);
    EmitProduct(graph, call.products[1], call.context, kv);
    Value* k = has_rotation() ? scratch("k_made", keys, columns) : x[1];
    graph.Emit(ops::SliceOf{.axis = 2, .offset = 0}, {kv}, {k});
    graph.Emit(ops::SliceOf{.axis = 2, .offset = columns}, {kv}, {x[2]});
    EmitRotary(graph, call, k, kv_heads(), false, x[1]);
    return x;
  }

  Operands SavedOperands(GraphBuilder& graph, const Call& call) const {
    const auto saved = [&](const char* name, int64_t rows, int64_t columns) {
      return graph.Saved(name, Shape{call.sizes.items, rows, columns}, SavedAs::kData);
    };
    if (call.sizes.packed) return {saved("qkv", call.sizes.queries, call.sizes.q_step())};
    return {saved("q", call.sizes.queries, call.sizes.q_step()),
            saved("k", call.sizes.keys, call.sizes.k_step()),
            saved("v", call.sizes.keys, call.sizes.v_step())};
  }

  Value* Heads(GraphBuilder& graph, const Call& call) const {
    return graph.Saved("heads", Shape{call.sizes.items, call.sizes.queries, call.sizes.y_step()},
                       SavedAs::kData);
  }

  // Turns the first heads of the rows, if the layer does so.
  void EmitRotary(GraphBuilder& graph, const Call& call, Value* x, int64_t turned, bool inverse,
                  Value* y) const {
    if (!has_rotation()) return;
    const Shape& shape = graph.shape(x);
    // With a cache positions go on from those of the pass before.
    Value* start = call.cont != nullptr ? graph.State("position", Shape{shape[0]}) : nullptr;
    graph.Emit(ops::Rotary{.positions = shape[1],
                           .heads = turned,
                           .width = call.sizes.width,
                           .others = shape[2] - turned * call.sizes.width,
                           .base = options().rotary_base(),
                           .inverse = inverse},
               {x, start, call.cont}, {y, start});
  }
  // x, or what becomes of it.
  Value* Turned(GraphBuilder& graph, const Call& call, const char* name, Value* x, int64_t turned,
                bool inverse) const {
    if (!has_rotation()) return x;
    Value* y = graph.Scratch(name, graph.shape(x));
    EmitRotary(graph, call, x, turned, inverse, y);
    return y;
  }

  void EmitProduct(GraphBuilder& graph, const Product& product, Value* x, Value* y) const {
    std::vector<Value*> inputs = {x, graph.param(product.param)};
    if (options().bias_term()) inputs.push_back(graph.param(product.param + 1));
    graph.Emit(ops::Gemm{.rows = product.rows,
                         .columns = product.columns,
                         .inner = product.inner,
                         .transpose_b = true},
               inputs, {y});
  }

  void EmitProductGrad(GraphBuilder& graph, const Product& product, Value* x, Value* dy,
                       Value* dx) const {
    graph.Emit(ops::Gemm{.rows = product.columns,
                         .columns = product.inner,
                         .inner = product.rows,
                         .transpose_a = true},
               {dy, x}, {graph.param_diff(product.param)});
    if (options().bias_term()) {
      graph.Emit(ops::SumToAxes{{.axis = 2, .num_axes = 1}}, {dy},
                 {graph.param_diff(product.param + 1)});
    }
    graph.Emit(ops::Gemm{.rows = product.rows, .columns = product.inner, .inner = product.columns},
               {dy, graph.param(product.param)}, {dx});
  }
};

REGISTER_LAYER_CLASS(MultiHeadAttention, "attention_param");

}  // namespace
}  // namespace caffe
