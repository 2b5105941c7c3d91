// Activations and other layers of one blob, element by element.
#include "tests/fuzz/dag/layer_texts.hpp"
#include "tests/fuzz/dag/net_writer.hpp"

namespace caffe::fuzz {
namespace {

std::string Pointwise(NetWriter& net) {
  return net.random().Pick<std::string>({"type: 'ReLU'",
                                         "type: 'ReLU'",
                                         "type: 'ReLU'",
                                         "type: 'ReLU'",
                                         "type: 'ReLU' relu_param { negative_slope: 0.1 }",
                                         "type: 'ReLU' relu_param { negative_slope: -0.5 }",
                                         "type: 'Sigmoid'",
                                         "type: 'TanH'",
                                         "type: 'ELU'",
                                         "type: 'ELU' elu_param { alpha: 0.5 }",
                                         "type: 'AbsVal'",
                                         "type: 'BNLL'",
                                         "type: 'Swish'",
                                         "type: 'Swish' swish_param { beta: 0.5 }",
                                         "type: 'Clip' clip_param { min: -0.7 max: 0.9 }",
                                         "type: 'Clip' clip_param { min: 0 max: 6 }",
                                         "type: 'ReLU6' relu6_param { threshold: 0.8 }",
                                         "type: 'HardSwish'",
                                         "type: 'Mish'",
                                         "type: 'GELU'",
                                         "type: 'SiLU'",
                                         "type: 'Power' power_param { scale: 0.5 shift: 0.25 }",
                                         "type: 'Power' power_param { power: 2 scale: 0.5 }",
                                         "type: 'Power'",
                                         "type: 'Exp' exp_param { scale: 0.2 }",
                                         "type: 'PReLU'",
                                         "type: 'PReLU' prelu_param { channel_shared: true }",
                                         "type: 'Dropout'",
                                         "type: 'Dropout' dropout_param { dropout_ratio: 0.2 }",
                                         "type: 'Split'",
                                         "type: 'Threshold' threshold_param { threshold: 0.1 }"});
}

void AddPointwise(NetWriter& net) {
  const KnownBlob bottom = net.ChooseAny();
  const std::string options = Pointwise(net);
  if (options == "type: 'Split'") {
    net.Add(options, {bottom}, {net.NewTop(), net.NewTop()});
  } else {
    net.Add(options, {bottom}, {net.TopOver(bottom)});
  }
}

const NetKind pointwise("pointwise", 18, AddPointwise);

}  // namespace
}  // namespace caffe::fuzz
