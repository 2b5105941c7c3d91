// Gradients of arithmetic.
#include "tests/layers/gradient_cases.hpp"

namespace caffe {
namespace {

void ArithmeticGradients(GradientCaseList& add) {
  add(Layer1("BatchReduction", "3x4x2", "BatchReduction",
             "batch_reduction_param { reduction_param { operation: MEAN coeff: 1.5 } }"));
  add(Layer1("BatchReductionLevels", "2x5x3", "BatchReduction",
             "batch_reduction_param { level: 1 level: 2 reduction_param { axis: 1 } }"));
  add(Layer1("BatchReductionDiagonal", "2x3x3x2", "BatchReduction",
             "batch_reduction_param { pos: true reduction_param { axis: 1 operation: MEAN } }"));
  add(Layer1("Scale", "2x3x2x2", "Scale", StrCat("scale_param { bias_term: true ", kFiller, "}")));
  add(Layer1("ScaleAxis0", "2x3x2", "Scale",
             StrCat("scale_param { axis: 0 num_axes: 2 ", kFiller, "}")));
  add({"ScaleTwoBottoms", "2x3x2x2 3x2",
       "layer { name: 'l' type: 'Scale' bottom: 'x0' bottom: 'x1' top: 'y' scale_param { axis: 1 } "
       "}"});
  add({"ScaleScalar", "2x3 scalar",
       "layer { name: 'l' type: 'Scale' bottom: 'x0' bottom: 'x1' top: 'y' scale_param { axis: 0 } "
       "}"});
  add(Layer1("Bias", "2x3x2x2", "Bias", StrCat("bias_param { ", kFiller, "}")));
  add({"BiasTwoBottoms", "2x3x2x2 3x2",
       "layer { name: 'l' type: 'Bias' bottom: 'x0' bottom: 'x1' top: 'y' bias_param { axis: 1 } "
       "}"});
  const auto eltwise = [&](const std::string& name, const std::string& options) -> GradientCase& {
    return add({"Eltwise" + name, "2x3x2 2x3x2 2x3x2",
                "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' "
                "eltwise_param { " +
                    options + " } }"});
  };
  eltwise("Sum", "operation: SUM");
  eltwise("SumCoefficients", "operation: SUM coeff: 1 coeff: -2 coeff: 0.5");
  eltwise("Prod", "operation: PROD");
  eltwise("ProdUnstable", "operation: PROD stable_prod_grad: false").gap = 0.2;
  eltwise("Max", "operation: MAX").is_distinct = true;
  add({"EltwiseSameTwice", "2x3",
       "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'x0' top: 'y' "
       "eltwise_param { operation: PROD } }"});
  for (const char* operation : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    add(Layer1(StrCat("Reduction", operation), "2x3x4", "Reduction",
               StrCat("reduction_param { axis: 1 coeff: 1.5 operation: ", operation, " }")))
        .gap = 0.1;
  }
  add({"Axpy", "2x3 2x3x4x2 2x3x4x2",
       "layer { name: 'l' type: 'Axpy' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"Axpy4D", "2x3x1x1 2x3x4x2 2x3x4x2",
       "layer { name: 'l' type: 'Axpy' bottom: 'x0' bottom: 'x1' bottom: 'x2' top: 'y' }"});
  add({"Parameter", "3x4",
       "layer { name: 'p' type: 'Parameter' top: 'w' parameter_param { shape { dim: 3 dim: 4 } } } "
       "layer { name: 'l' type: 'Eltwise' bottom: 'x0' bottom: 'w' top: 'y' }"});
  int binaries = 0;
  const auto binary = [&](const std::string& operation, const std::string& inputs) {
    GradientCase& test =
        add({"Binary" + operation + std::to_string(binaries++), inputs,
             "layer { name: 'l' type: 'Binary' bottom: 'x0' bottom: 'x1' top: 'y' binary_param { "
             "operation: " +
                 operation + " } }"});
    if (operation == "MAXIMUM" || operation == "MINIMUM") test.is_distinct = true;
    if (operation == "DIVIDE" || operation == "POWER") test.low = 0.5, test.high = 2;
  };
  for (const char* operation :
       {"ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "POWER"}) {
    for (const char* inputs : {"2x3 2x3", "3x1 2x3x4", "4 2x3x1", "2x1x3x1 5x1x2", "2x3 1"})
      binary(operation, inputs);
  }
  add(Layer1("Cast", "2x3", "Cast", "cast_param { type: FP64 }"));
  add(Layer1("LayerScale", "2x3x4", "LayerScale", "layer_scale_param { initial: 0.7 }"));
  const auto formula = [&](const std::string& name, const std::string& inputs,
                           const std::string& expr) -> GradientCase& {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    return add({"Expression" + name, inputs,
                StrCat("layer { name: 'l' type: 'Expression' ", bottoms,
                       "top: 'y' expression_param { expr: '", expr, "' } }")});
  };
  formula("", "2x3x4", "x * sigmoid(1.702 * x) - gelu(x) * erf(x) / (2 + cos(x))");
  formula("Broadcast", "2x3x4 3x1 4", "x * y^2 + sin(z) * tanh(x + y)");
  formula("OfLogarithms", "2x3x4", "log(x) * sqrt(x) + rsqrt(x) - x^x").low = 0.5;
  formula("Softmax", "2x5x3", "exp(x - max(x, axis=1)) / sum(exp(x - max(x, axis=1)), axis=1)");
  formula("Normalized", "3x4", "(x - mean(x, axis=0)) * rsqrt(mean(x * x, axis=0) + 0.1)");
  formula("Choices", "2x3x4 2x3x4", "where(x < y, softplus(x), min(x, y)) + relu(x) * abs(y)");
}

const GradientCases arithmetic_gradients("arithmetic", ArithmeticGradients);

}  // namespace
}  // namespace caffe
