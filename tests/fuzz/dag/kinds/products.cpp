// Matrix products.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

void AddProduct(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  const int axis = net.random().Chance(0.8) ? 1 : net.random().Below(bottom.shape.num_axes() + 1);
  net.Add(StrCat("type: 'InnerProduct' inner_product_param { num_output: ", AnyChannels(net),
                 " axis: ", axis, Flag(net, "transpose", 0.2),
                 net.random().Chance(0.3) ? " bias_term: false" : "", Fillers(net), " }"),
          {bottom}, {net.NewTop()});
}

void AddMatMul(NetWriter& net) {
  const auto a = net.ChooseWithAxes(3);
  if (!a) return;
  const auto b = net.random().Chance(0.5) ? a : net.ChooseLike(*a);
  if (b) net.Add("type: 'MatMul' matmul_param { transpose_b: true }", {*a, *b}, {net.NewTop()});
}

// The matrices of a blob with one matrix, or with one for each item: other axes are broadcast.
void AddBroadcastMatMul(NetWriter& net) {
  const auto a = net.ChooseWithAxes(3);
  if (!a || a->batch != 0 || a->shape[0] != net.items()) return;
  const bool transposes_a = net.random().Chance(0.3), transposes_b = net.random().Chance(0.5);
  const int64_t inner = a->shape[transposes_a ? -2 : -1], columns = net.random().Between(1, 7);
  Shape shape = a->shape.With(a->shape.num_axes() - 2, transposes_b ? columns : inner)
                    .With(a->shape.num_axes() - 1, transposes_b ? inner : columns);
  for (int axis = 1; axis < shape.num_axes() - 2; ++axis) {
    if (net.random().Chance(0.5)) shape = shape.With(axis, 1);
  }
  net.Add(StrCat("type: 'MatMul' matmul_param { transpose_a: ", transposes_a ? "true" : "false",
                 " transpose_b: ", transposes_b ? "true" : "false", " }"),
          {*a, net.NewInput("x", shape)}, {net.NewTop()});
}

const NetKind broadcast_matmul("MatMul of a batch", 3, AddBroadcastMatMul);
const NetKind product("InnerProduct", 8, AddProduct);
const NetKind matmul("MatMul", 2, AddMatMul);

}  // namespace
}  // namespace caffe::fuzz
