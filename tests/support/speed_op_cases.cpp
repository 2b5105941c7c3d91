// The sizes of ResNet-50, AlexNet and their solver with a batch of 32.
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

void AddConv(std::vector<OpCase>* cases, const std::string& name, std::vector<int64_t> x,
             int64_t outputs, int64_t kernel, int64_t stride) {
  const int64_t pad = kernel / 2;
  const ops::ConvGeometry g{{kernel, kernel}, {stride, stride}, {pad, pad}, {1, 1}, 1};
  const CaseOperand in = T(x), w = T({outputs, x[1], kernel, kernel});
  const CaseOperand y = T({x[0], outputs, g.OutputSize(0, x[2]), g.OutputSize(1, x[3])});
  const CaseOperand bias = T({outputs}).Wide();
  cases->push_back(
      {"Conv" + name, ops::Conv{g, {}, {{ops::Pointwise::Kind::kRelu}}}, {in, w, bias}, {y}});
  cases->push_back({"ConvGradData" + name, ops::ConvGradData{g}, {y, w}, {in}});
  cases->push_back({"ConvGradWeights" + name, ops::ConvGradWeights{g}, {in, y}, {w.Wide()}});
}

void AddDepthwise(std::vector<OpCase>* cases, const std::string& name, std::vector<int64_t> x,
                  int64_t stride) {
  const ops::ConvGeometry g{{3, 3}, {stride, stride}, {1, 1}, {1, 1}, x[1]};
  const CaseOperand in = T(x), w = T({x[1], 1, 3, 3});
  const CaseOperand y = T({x[0], x[1], g.OutputSize(0, x[2]), g.OutputSize(1, x[3])});
  cases->push_back({"Depthwise" + name, ops::Conv{g}, {in, w}, {y}});
  cases->push_back({"DepthwiseGradData" + name, ops::ConvGradData{g}, {y, w}, {in}});
  cases->push_back({"DepthwiseGradWeights" + name, ops::ConvGradWeights{g}, {in, y}, {w.Wide()}});
}

std::vector<OpCase> MakeCases() {
  std::vector<OpCase> cases;
  AddConv(&cases, "7x7", {32, 3, 224, 224}, 64, 7, 2);
  AddConv(&cases, "3x3", {32, 64, 56, 56}, 64, 3, 1);
  AddConv(&cases, "1x1", {32, 256, 56, 56}, 64, 1, 1);

  AddDepthwise(&cases, "Stride1", {16, 144, 56, 56}, 1);
  AddDepthwise(&cases, "Stride2", {16, 96, 112, 112}, 2);
  AddDepthwise(&cases, "Small", {16, 576, 14, 14}, 1);

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
