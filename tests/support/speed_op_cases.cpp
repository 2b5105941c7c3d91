// The sizes of real nets and their solver.
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/eltwise.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pointwise.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/ops/random.hpp"
#include "caffe/ops/update.hpp"
#include "caffe/ops/update_rules.hpp"
#include "tests/support/op_case.hpp"

namespace caffe::testing {
namespace {

// A convolution of real nets. Its cases are named after the numbers, which
// benchmarks/kernel_table.py reads: "Conv(32x64x56x56,64,3,1,1)".
struct ConvOfNet {
  std::vector<int64_t> x;
  int64_t outputs, kernel, stride = 1, group = 1;
};

const ConvOfNet kConvsOfNets[] = {
    {{32, 3, 224, 224}, 64, 7, 2},                                      // ResNet-50
    {{32, 64, 56, 56}, 64, 3},           {{32, 128, 28, 28}, 128, 3},   //
    {{32, 256, 14, 14}, 256, 3},         {{32, 512, 7, 7}, 512, 3},     //
    {{32, 64, 56, 56}, 256, 1},          {{32, 256, 56, 56}, 64, 1},    //
    {{32, 512, 28, 28}, 128, 1},         {{32, 1024, 14, 14}, 256, 1},  //
    {{32, 2048, 7, 7}, 512, 1},                                         //
    {{32, 16, 56, 56}, 64, 3},           {{32, 128, 56, 56}, 16, 1},    // SqueezeNet
    {{32, 3, 224, 224}, 32, 3, 2},                                      // MobileNet-v2
    {{16, 96, 112, 112}, 96, 3, 2, 96},  {{16, 144, 56, 56}, 144, 3, 1, 144},
    {{16, 576, 14, 14}, 576, 3, 1, 576}, {{32, 24, 56, 56}, 144, 1},
    {{32, 144, 56, 56}, 24, 1},          {{32, 96, 27, 27}, 256, 5, 1, 2},  // AlexNet
};

void AddConvOfNet(std::vector<OpCase>* cases, const ConvOfNet& shape) {
  const int64_t k = shape.kernel, pad = k / 2, stride = shape.stride;
  const ops::ConvGeometry g{{k, k}, {stride, stride}, {pad, pad}, {1, 1}, shape.group};
  const CaseOperand x = T(shape.x), w = T({shape.outputs, shape.x[1] / shape.group, k, k});
  const CaseOperand y =
      T({shape.x[0], shape.outputs, g.OutputSize(0, shape.x[2]), g.OutputSize(1, shape.x[3])});
  const CaseOperand bias = T({shape.outputs}).Wide();
  const std::string name =
      StrCat("(", x.shape, ",", shape.outputs, ",", k, ",", stride, ",", shape.group, ")");
  cases->push_back(
      {"Conv" + name, ops::Conv{g, {}, {{ops::Pointwise::Kind::kRelu}}}, {x, w, bias}, {y}});
  cases->push_back({"ConvGradData" + name, ops::ConvGradData{g}, {y, w}, {x}});
  cases->push_back({"ConvGradWeights" + name, ops::ConvGradWeights{g}, {x, y}, {w.Wide()}});
}

std::vector<OpCase> MakeCases() {
  std::vector<OpCase> cases;
  for (const ConvOfNet& shape : kConvsOfNets) AddConvOfNet(&cases, shape);

  const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                       std::vector<CaseOperand> out) {
    cases.push_back({name, std::move(op), std::move(in), std::move(out)});
  };
  add("GemmFc7", ops::Gemm{32, 4096, 4096, false, true}, {T({32, 4096}), T({4096, 4096})},
      {T({32, 4096})});
  add("GemmFc7GradWeights", ops::Gemm{4096, 4096, 32, true, false}, {T({32, 4096}), T({32, 4096})},
      {T({4096, 4096}).Wide()});

  const CaseOperand x = T({32, 256, 56, 56}), c = T({256}).Wide(), variance = c.In(0.5, 2);
  add("Relu", ops::Relu{}, {x}, {x});
  add("ReluGrad", ops::ReluGrad{}, {x, x}, {x});
  add("EltwiseSumRelu", ops::EltwiseSum{{}, {{ops::Pointwise::Kind::kRelu}}}, {x, x}, {x});
  add("Dropout", ops::Dropout{0.5, 11}, {x}, {x});
  add("BatchNormScaleRelu", ops::BatchNorm{1e-5, {{ops::Pointwise::Kind::kRelu}}}, {x, c, c},
      {x, c, c});
  add("BatchNormGradScaleRelu", ops::BatchNormGrad{1e-5}, {x, c, variance, x, c, x}, {x, c, c});
  add("BatchNormInferenceScale", ops::BatchNormInference{1e-5},
      {x, c, variance, T({1}).Wide().In(1, 1), c, c}, {x});
  add("ScaleShift", ops::ScaleShift{{1, 1}}, {x, c, c}, {x});
  add("SumToAxes", ops::SumToAxes{{1, 1}}, {x}, {c});
  add("Cast", ops::Cast{}, {x}, {x.As(DType::kFloat)});
  add("ReorderToLast", ops::Reorder{}, {x.As(Layout::kPlain)}, {x.As(Layout::kChannelsLast)});
  add("ReorderToPlain", ops::Reorder{}, {x.As(Layout::kChannelsLast)}, {x.As(Layout::kPlain)});
  add("Concat", ops::Concat{1}, {x, x}, {T({32, 512, 56, 56})});

  const ops::PoolGeometry g3x3{{3, 3}, {2, 2}, {0, 0}, false};
  const CaseOperand image = T({32, 64, 112, 112}), pooled = T({32, 64, 56, 56});
  add("MaxPool3x3", ops::MaxPool{g3x3}, {image}, {pooled, pooled.Wide()});
  add("MaxPool3x3Bytes", ops::MaxPool{g3x3}, {image}, {pooled, pooled.As(DType::kUInt8)});
  add("MaxPoolGrad3x3Bytes", ops::MaxPoolGrad{g3x3}, {pooled.As(DType::kUInt8).In(0, 8), pooled},
      {image});
  add("MaxPoolGrad3x3", ops::MaxPoolGrad{g3x3}, {pooled.Wide().In(0, 0), pooled}, {image});
  const ops::PoolGeometry global{{7, 7}, {1, 1}, {0, 0}, false};
  add("AvePoolGlobal", ops::AvePool{global}, {T({32, 2048, 7, 7})}, {T({32, 2048, 1, 1})});
  add("AvePoolGradGlobal", ops::AvePoolGrad{global}, {T({32, 2048, 1, 1})}, {T({32, 2048, 7, 7})});

  const CaseOperand norm = T({32, 96, 55, 55});
  add("Lrn", ops::Lrn{5, 1e-4, 0.75, 1}, {norm}, {norm});
  add("LrnGrad", ops::LrnGrad{5, 1e-4, 0.75, 1}, {norm, norm}, {norm});

  const CaseOperand scores = T({32, 1000}), labels = T({32}).Labels(1000), loss = T({});
  add("Softmax", ops::Softmax{1}, {scores}, {scores.Wide()});
  add("SoftmaxLoss", ops::SoftmaxLoss{}, {scores.In(0.1, 0.9), labels}, {loss});

  const CaseOperand w = T({25'000'000}).Wide(),
                    step = T({ops::kStepNumbers}).As(DType::kDouble).In(0.1, 0.9);
  add("SgdUpdate", ops::ParameterUpdate<ops::SgdUpdate>{{{}}}, {w, step, Absent()}, {w, w});
  add("AdamUpdate", ops::ParameterUpdate<ops::AdamUpdate>{{{}}}, {w, step, Absent()},
      {w, w, w.In(0, 1)});
  add("MeasureParameters", ops::MeasureParameters{{false}}, {w, w, w},
      {T({2, ops::kMeasures}).As(DType::kDouble)});
  return cases;
}

}  // namespace

const std::vector<OpCase>& SpeedCases() {
  static const std::vector<OpCase> cases = MakeCases();
  return cases;
}

}  // namespace caffe::testing
