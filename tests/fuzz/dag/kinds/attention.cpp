// Attention between rows of numbers.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/worker_check.hpp"

namespace caffe::fuzz {
namespace {

// A blob of items x rows x numbers: one that there is, or the channels of an image as rows.
std::optional<KnownBlob> ChooseRows(NetWriter& net) {
  const auto has_rows = [](const KnownBlob& blob) { return blob.shape.num_axes() == 3; };
  const auto image = net.random().Chance(0.5) ? net.ChooseImage() : std::nullopt;
  if (!image || image->batch != 0) return net.Choose(has_rows);
  if (!net.Add("type: 'Reshape' reshape_param { axis: 2 shape { dim: -1 } }", {*image},
               {net.NewTop()})) {
    return std::nullopt;
  }
  return net.last();
}

int AnyDivisor(NetWriter& net, int64_t number) {
  std::vector<int> divisors;
  for (int i = 1; i <= number && i <= 8; ++i) {
    if (number % i == 0) divisors.push_back(i);
  }
  return net.random().Pick(divisors);
}

std::string AttentionOptions(NetWriter& net, int heads) {
  return StrCat("attention_param { num_heads: ", heads, Flag(net, "causal", 0.3),
                net.random().Chance(0.3) ? " scale: 0.5" : "");
}

void AddMultiHeadAttention(NetWriter& net) {
  const auto x = ChooseRows(net);
  if (!x) return;
  const int heads = AnyDivisor(net, x->shape[2]);
  const bool turns = x->shape[2] / heads % 2 == 0 && net.random().Chance(0.3);
  const bool has_bias = net.random().Chance(0.7);
  // A head of keys and values serves several heads of queries.
  net.Add(
      StrCat("type: 'MultiHeadAttention' ", AttentionOptions(net, heads),
             " num_kv_heads: ", net.random().Chance(0.3) ? AnyDivisor(net, heads) : 0,
             turns ? " rotary_base: 100" : "",
             has_bias ? Fillers(net) : " bias_term: false weight_filler { type: 'xavier' }", " }"),
      {*x}, {net.NewTop()});
}

// Queries, keys and values are blobs of one shape, often the same one.
void AddAttention(NetWriter& net) {
  const auto q = ChooseRows(net);
  if (!q) return;
  const auto like = [&] { return net.random().Chance(0.5) ? net.ChooseLike(*q).value_or(*q) : *q; };
  const KnownBlob k = like(), v = like();
  net.Add(StrCat("type: 'Attention' ", AttentionOptions(net, AnyDivisor(net, q->shape[2])), " }"),
          {*q, k, v}, {net.NewTop()});
}

const NetKind multi_head_attention("MultiHeadAttention", 3, AddMultiHeadAttention);
const NetKind attention("Attention", 3, AddAttention);
const ItemwiseLayer itemwise_attention[] = {ItemwiseLayer("MultiHeadAttention"), ItemwiseLayer("Attention")};

}  // namespace
}  // namespace caffe::fuzz
