// Gradients of activations and of what drops numbers.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ActivationsGradients(GradientCaseList& add) {
  add(Layer1("ReLU", "2x3x4x2", "ReLU", "")).gap = 0.1;
  add(Layer1("ReLULeaky", "2x3x4x2", "ReLU", "relu_param { negative_slope: 0.2 }")).gap = 0.1;
  add(Layer1("Sigmoid", "2x7", "Sigmoid", ""));
  add(Layer1("TanH", "2x7", "TanH", ""));
  add(Layer1("AbsVal", "2x7", "AbsVal", "")).gap = 0.1;
  add(Layer1("BNLL", "2x7", "BNLL", ""));
  add(Layer1("ELU", "2x7", "ELU", "elu_param { alpha: 0.7 lambda: 1.1 }")).gap = 0.1;
  add(Layer1("Swish", "2x7", "Swish", "swish_param { beta: 1.5 }"));
  add(Layer1("SiLU", "2x7", "SiLU", ""));
  add(Layer1("Mish", "2x7", "Mish", ""));
  add(Layer1("GELU", "2x7", "GELU", ""));
  for (const char* type : {"HardSwish", "HardSigmoid"}) {
    GradientCase& test = add(Layer1(type, "4x9", type, ""));
    test.low = -5;
    test.high = 5;
  }
  add(Layer1("ReLU6", "2x7", "ReLU6", "relu6_param { threshold: 1.005 }")).gap = 0.1;
  add(Layer1("Clip", "2x7", "Clip", "clip_param { min: -0.405 max: 0.515 }")).is_distinct = true;
  add(Layer1("Power", "2x7", "Power", "power_param { power: 3 scale: 0.5 shift: 2 }"));
  add(Layer1("PowerFraction", "2x7", "Power", "power_param { power: 0.37 shift: 2 }"));
  add(Layer1("Exp", "2x7", "Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"));
  add(Layer1("Log", "2x7", "Log", "log_param { base: 10 scale: 0.5 shift: 2 }"));
  add(Layer1("Dropout", "4x9", "Dropout", "dropout_param { dropout_ratio: 0.4 }"));
  add(Layer1("DropoutTest", "4x9", "Dropout", "")).is_test_phase = true;
  const std::string unscaled = "dropout_param { dropout_ratio: 0.4 scale_train: false }";
  add(Layer1("DropoutUnscaled", "4x9", "Dropout", unscaled));
  add(Layer1("DropoutUnscaledTest", "4x9", "Dropout", unscaled)).is_test_phase = true;
  add(Layer1("PReLU", "2x3x4", "PReLU", "")).gap = 0.1;
  add(Layer1("PReLUShared", "2x3x4", "PReLU", "prelu_param { channel_shared: true }")).gap = 0.1;
  add(Layer1("Softplus", "2x3x4", "Softplus", ""));
  add(Layer1("DropPath", "6x2x3", "DropPath", "drop_path_param { drop_ratio: 0.4 }"));
}

const GradientCases activations_gradients("activations", ActivationsGradients);

}  // namespace
}  // namespace caffe
