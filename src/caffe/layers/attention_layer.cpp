#include "caffe/layer_factory.hpp"
#include "caffe/layers/attention_base.hpp"

namespace caffe {
namespace {

// Bottoms: queries (N,T,H D), keys (N,S,Hk D), values (N,S,Hk E), optionally a mask (N,S), which is
// 0 for keys that no query sees, and with cache_length cont (N). Top: (N,T,H E).
class AttentionLayer final : public AttentionBase {
 public:
  explicit AttentionLayer(const LayerParameter& param) : AttentionBase(param) {
    Require(!options().has_bias_term() && !options().has_weight_filler() &&
                !options().has_bias_filler() && !options().has_rotary_base(),
            "Attention has no parameters and turns nothing; for bias_term, weight_filler, "
            "bias_filler and rotary_base use MultiHeadAttention");
  }

  LayerTraits traits() const override {
    const int cont = has_cache() ? 1 : 0;
    return {.min_bottoms = 3 + cont, .max_bottoms = 4 + cont, .num_tops = 1};
  }
  bool AllowForceBackward(int bottom) const override { return bottom < 3; }

  std::vector<Shape> InferTopShapes(const std::vector<Shape>& bottoms) const override {
    const Shape &q = bottoms[0], &k = bottoms[1], &v = bottoms[2];
    Require(q.num_axes() == 3 && k.num_axes() == 3 && v.num_axes() == 3, "the bottoms have shapes ",
            q, ", ", k, " and ", v, "; they must be items x rows x numbers of all heads");
    Require(q[0] == k[0] && q[0] == v[0] && k[1] == v[1], "the bottoms have shapes ", q, ", ", k,
            " and ", v, "; they must have as many items, and keys as many rows as values");
    Require(
        q[2] % heads() == 0 && k[2] % kv_heads() == 0 && v[2] % kv_heads() == 0 &&
            q[2] / heads() == k[2] / kv_heads(),
        "the bottoms have shapes ", q, ", ", k, " and ", v, "; rows of ", heads(),
        " heads of queries and ", kv_heads(),
        " of keys and values must be divided evenly, and heads of queries and keys have as many "
        "numbers");
    if (has_cache()) {
      RequireCache(bottoms.back(), q[0], q[1]);
      Require(q[1] == k[1], "the bottoms have shapes ", q, ", ", k, " and ", v,
              "; with cache_length there must be a key for each query");
    }
    if (has_mask(bottoms.size())) RequireMask(bottoms[3], k[0], k[1]);
    return {Shape{q[0], q[1], v[2] / kv_heads() * heads()}};
  }

  void EmitForward(GraphBuilder& graph) const override {
    const Operands x = {graph.bottom(0), graph.bottom(1), graph.bottom(2)};
    if (has_cache()) {
      EmitCachedAttention(graph, SizesOf(graph), x, Mask(graph),
                          graph.bottom(graph.num_bottoms() - 1), graph.top(0));
    } else {
      EmitAttention(graph, SizesOf(graph), x, Mask(graph), graph.top(0));
    }
  }

  void EmitBackward(GraphBuilder& graph) const override {
    EmitAttentionGrad(graph, SizesOf(graph), {graph.bottom(0), graph.bottom(1), graph.bottom(2)},
                      Mask(graph), graph.top(0), graph.top_diff(0),
                      {graph.bottom_diff(0), graph.bottom_diff(1), graph.bottom_diff(2)});
  }

 private:
  ops::AttentionSizes SizesOf(const GraphBuilder& graph) const {
    const Shape &q = graph.shape(graph.bottom(0)), &v = graph.shape(graph.bottom(2));
    ops::AttentionSizes sizes = Sizes(q[0], q[1], v[1], q[2] / heads());
    sizes.value_width = v[2] / kv_heads();
    return sizes;
  }
  bool has_mask(size_t bottoms) const { return bottoms == (has_cache() ? 5 : 4); }
  Value* Mask(const GraphBuilder& graph) const {
    return has_mask(static_cast<size_t>(graph.num_bottoms())) ? graph.bottom(3) : nullptr;
  }
};

REGISTER_LAYER_CLASS(Attention);

}  // namespace
}  // namespace caffe
