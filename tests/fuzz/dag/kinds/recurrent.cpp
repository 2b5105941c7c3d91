// Recurrent layers, whose axis 0 is time.
#include "tests/fuzz/dag/layer_texts.hpp"

namespace caffe::fuzz {
namespace {

// A state that is NaN remains one, as in Caffe: a new sequence multiplies it by 0. So what a pass
// gives depends on the one before it.
void AddRecurrent(NetWriter& net) {
  if (net.has_nan()) return;
  const auto x = net.Choose([](const KnownBlob& blob) {
    return blob.batch == 0 && blob.shape.num_axes() >= 3 && blob.shape.count(2) <= 64;
  });
  if (!x) return;
  std::vector<KnownBlob> bottoms = {*x};
  const std::string type = net.random().Pick({"LSTM", "GRU", "RNN"});
  if (type != "GRU" || net.random().Chance(0.5))
    bottoms.push_back(net.NewInput(StrCat("cont", x->shape[1]), Shape{x->shape[0], x->shape[1]}));
  net.Add(StrCat("type: '", type, "' recurrent_param { num_output: ", net.random().Between(1, 9),
                 " num_layers: ", net.random().Pick({1, 1, 2, 3}), Flag(net, "bidirectional", 0.3),
                 Fillers(net), " }"),
          bottoms, {net.NewTop()});
}

const NetKind recurrent("recurrent", 5, AddRecurrent);

}  // namespace
}  // namespace caffe::fuzz
