// Softmax and reductions.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

void AddSoftmax(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  net.Add(StrCat("type: 'Softmax' softmax_param { axis: ",
                 net.random().Chance(0.8) ? 1 : net.random().Below(bottom.shape.num_axes()), " }"),
          {bottom}, {net.NewTop()});
}

void AddReduction(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  net.Add(StrCat("type: 'Reduction' reduction_param { operation: ",
                 net.random().Pick({"SUM", "ASUM", "SUMSQ", "MEAN"}),
                 " axis: ", net.random().Between(1, std::max(1, bottom.shape.num_axes() - 1)),
                 " coeff: 0.5 }"),
          {bottom}, {net.NewTop()});
}

const NetKind softmax("Softmax", 3, AddSoftmax);
const NetKind reduction("Reduction", 3, AddReduction);

}  // namespace
}  // namespace caffe::fuzz
