#include "caffe/ops/conv.hpp"
#include "caffe/ops/norm.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

struct ConvShape {
  std::string name;
  std::vector<int64_t> x;
  int64_t outputs;
  ops::ConvGeometry geometry;
  bool is_for_forward = false;  // tiles and epilogues, which gradients of weights do not have
};

struct ConvPairShape {
  std::string name;
  std::vector<int64_t> x;
  int64_t hidden;
  ops::ConvGeometry first, second;
};

}  // namespace

// A depthwise convolution after a 1x1 one, and pairs of others.
void AddConvPairCases(std::vector<OpCase>* cases) {
  const ops::ConvGeometry pointwise = {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1};
  const auto depthwise = [](int64_t channels, int64_t stride, int64_t pad) {
    return ops::ConvGeometry{{3, 3}, {stride, stride}, {pad, pad}, {1, 1}, channels};
  };
  const std::vector<ConvPairShape> shapes = {
      {"", {2, 8, 14, 14}, 96, pointwise, depthwise(96, 1, 1)},
      {"Strided", {2, 24, 13, 31}, 48, pointwise, depthwise(48, 2, 1)},
      {"StridedEven", {1, 3, 8, 6}, 16, pointwise, depthwise(16, 2, 1)},
      {"Unpadded", {1, 5, 5, 24}, 32, pointwise, depthwise(32, 1, 0)},
      {"WidelyPadded", {2, 5, 3, 4}, 32, pointwise, depthwise(32, 1, 2)},
      {"OnePixel", {3, 40, 1, 1}, 80, pointwise, depthwise(80, 1, 1)},
      {"BeyondInput", {2, 5, 2, 2}, 16, pointwise, depthwise(16, 2, 0)},
      {"OddChannels", {2, 5, 6, 6}, 23, pointwise, depthwise(23, 1, 1)},
      {"NotPointwise", {1, 6, 8, 7}, 4, {{3, 2}, {2, 1}, {1, 0}, {1, 1}, 2}, pointwise},
  };
  for (const ConvPairShape& shape : shapes) {
    const int64_t outputs = shape.hidden;
    std::vector<int64_t> y = {shape.x[0], outputs};
    std::vector<int64_t> w = {shape.hidden, shape.x[1] / shape.first.group};
    std::vector<int64_t> second_w = {outputs, shape.hidden / shape.second.group};
    for (int i = 0; i < 2; ++i) {
      y.push_back(shape.second.OutputSize(i, shape.first.OutputSize(i, shape.x[2 + i])));
      w.push_back(shape.first.kernel[i]);
      second_w.push_back(shape.second.kernel[i]);
    }
    const CaseOperand bias = T({shape.hidden}).Wide();
    const Shape between{shape.x[0], shape.hidden, shape.first.OutputSize(0, shape.x[2]),
                        shape.first.OutputSize(1, shape.x[3])};
    const auto add = [&](const std::string& name, const ops::Epilogue& first,
                         const ops::Epilogue& second, CaseOperand first_bias,
                         CaseOperand second_bias) {
      cases->push_back(
          {"ConvPair" + name + shape.name,
           PairOf({shape.first, {}, first}, {shape.second, {}, second}, between),
           {T(shape.x), T(w), std::move(first_bias), T(second_w), std::move(second_bias)},
           {T(y)}});
    };
    add("", {}, {}, bias, bias);
    add("Relus", {Relu()}, {Relu(0.25F)}, bias, bias);
    add("NoBias", {Relu()}, {Relu(0.25F)}, Absent(), Absent());
  }
}

void AddConvCases(std::vector<OpCase>* cases) {
  const std::vector<ConvShape> shapes = {
      {"3x3", {2, 16, 9, 7}, 24, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {"3x3Tiles", {2, 32, 9, 12}, 48, {{3, 3}, {1, 1}, {0, 2}, {1, 1}, 1}},
      {"1x1", {2, 32, 6, 5}, 16, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"1x1Strided", {2, 16, 7, 7}, 8, {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
      {"1x1Wide", {1, 128, 3, 4}, 136, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"1x1WideStrided", {1, 136, 3, 5}, 128, {{1, 1}, {2, 2}, {0, 0}, {1, 1}, 1}},
      {"1x1Blocks", {2, 6, 5, 9}, 64, {{1, 1}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"Strided", {2, 8, 11, 10}, 8, {{5, 3}, {2, 3}, {2, 1}, {1, 1}, 1}},
      {"Groups", {2, 8, 6, 6}, 12, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 2}},
      {"Depthwise", {2, 16, 6, 6}, 16, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 16}},
      {"DepthwiseStrided", {2, 23, 9, 10}, 23, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 23}},
      {"DepthwiseOdd", {1, 40, 11, 8}, 40, {{2, 3}, {2, 2}, {0, 2}, {1, 1}, 40}},
      {"DepthwiseTall", {2, 7, 5, 17}, 7, {{5, 3}, {1, 1}, {3, 1}, {1, 1}, 7}},
      {"Depthwise8", {2, 8, 7, 7}, 8, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}},
      {"Depthwise24", {2, 24, 13, 10}, 24, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, 24}},
      {"Depthwise576", {1, 576, 5, 6}, 576, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 576}},
      {"DepthwiseUnpadded", {2, 8, 9, 12}, 8, {{3, 3}, {2, 2}, {0, 0}, {1, 1}, 8}},
      {"DepthwiseWidelyPadded", {1, 16, 3, 4}, 16, {{3, 3}, {1, 1}, {3, 4}, {1, 1}, 16}},
      {"DepthwiseManyRows", {20, 8, 8, 9}, 8, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 8}},
      {"DepthwiseLongRows", {1, 136, 3, 45}, 136, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 136}},
      {"Depthwise5x5", {2, 24, 9, 11}, 24, {{5, 5}, {1, 1}, {2, 2}, {1, 1}, 24}},
      {"Depthwise5x5Strided", {3, 40, 14, 9}, 40, {{5, 5}, {2, 2}, {2, 1}, {1, 1}, 40}},
      {"Depthwise7x7", {1, 16, 8, 9}, 16, {{7, 7}, {1, 1}, {3, 3}, {1, 1}, 16}},
      {"DepthwiseDilated", {2, 24, 9, 8}, 24, {{3, 3}, {1, 1}, {2, 2}, {2, 2}, 24}},
      {"DepthwiseBeyondInput", {2, 5, 1, 2}, 5, {{2, 3}, {2, 2}, {0, 0}, {1, 1}, 5}},
      {"Dilated", {1, 6, 12, 9}, 5, {{3, 3}, {1, 1}, {2, 2}, {2, 2}, 1}},
      {"DilatedOdd", {1, 31, 13, 2}, 31, {{4, 4}, {1, 1}, {3, 3}, {2, 2}, 1}, true},
      {"OnlyPadding", {1, 7, 2, 1}, 31, {{4, 4}, {2, 2}, {3, 3}, {2, 2}, 1}},
      {"3Channels", {2, 3, 15, 15}, 16, {{7, 7}, {2, 2}, {3, 3}, {1, 1}, 1}},
      {"3ChannelsBlocks", {3, 3, 9, 19}, 80, {{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}},
      {"3ChannelsWide", {1, 3, 4, 3}, 32, {{2, 5}, {3, 2}, {2, 4}, {1, 1}, 1}},
      {"1Channel", {2, 1, 12, 12}, 20, {{5, 5}, {1, 1}, {0, 0}, {1, 1}, 1}},
      {"BeyondInput", {2, 4, 2, 3}, 5, {{3, 5}, {2, 3}, {0, 0}, {1, 1}, 1}},
      {"NarrowerThanStride", {2, 8, 6, 1}, 7, {{3, 2}, {3, 3}, {1, 1}, {1, 1}, 1}},
      {"1D", {2, 5, 17}, 6, {{4}, {2}, {1}, {1}, 1}},
      {"3D", {1, 3, 5, 6, 4}, 4, {{3, 2, 3}, {1, 2, 1}, {1, 0, 1}, {1, 1, 1}, 1}},
      {"4D", {1, 2, 3, 3, 3, 3}, 2, {{2, 2, 2, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {1, 1, 1, 1}, 1}},
  };
  for (const ConvShape& shape : shapes) {
    const ops::ConvGeometry& g = shape.geometry;
    std::vector<int64_t> y = {shape.x[0], shape.outputs}, w = {shape.outputs, shape.x[1] / g.group};
    for (int i = 0; i < g.spatial_axes(); ++i) {
      y.push_back(g.OutputSize(i, shape.x[2 + i]));
      w.push_back(g.kernel[i]);
    }
    const CaseOperand bias = T({shape.outputs}).Wide();
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                         std::vector<CaseOperand> out, OperandSet accumulates = {}) {
      cases->push_back(
          {name + shape.name, std::move(op), std::move(in), std::move(out), accumulates});
    };
    add("Conv", ops::Conv{g}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvNoBias", ops::Conv{g}, {T(shape.x), T(w)}, {T(y)});
    add("ConvRelu", ops::Conv{g, {}, {Relu()}}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvLeaky", ops::Conv{g, {}, {Relu(0.25f)}}, {T(shape.x), T(w), bias}, {T(y)});
    using Kind = ops::Pointwise::Kind;
    const CaseOperand x_of_y = T(y);
    add("ConvClip", ops::Conv{g, {}, {{Kind::kClip, -0.5f, 0.75f}}}, {T(shape.x), T(w), bias},
        {T(y)});
    add("ConvSwish", ops::Conv{g, {}, {{Kind::kSwish, 1.5f}}}, {T(shape.x), T(w), bias}, {T(y)});
    add("ConvAddRelu", ops::Conv{g, {}, {{Kind::kAdd, 0, 0, 3}, Relu()}},
        {T(shape.x), T(w), bias, x_of_y}, {T(y)});
    add("ConvScaleShift", ops::Conv{g, {}, {{Kind::kScale, 0, 0, 3}, {Kind::kShift, 0, 0, 4}}},
        {T(shape.x), T(w), Absent(), bias, bias}, {T(y)});
    std::vector<int64_t> whole = y;
    whole[1] += 13;
    add("ConvInto", IntoOf({g, {}, {Relu()}}, 5, Shape(y)), {T(shape.x), T(w), bias, T(whole)},
        {T(whole)});
    const CaseOperand statistics = T({shape.outputs}).Wide();
    add("ConvStatistics", StatisticsOf({g}), {T(shape.x), T(w)}, {T(y), statistics, statistics});
    add("ConvStatisticsRunning", StatisticsOf({g}, ops::UpdateRunningStatistics{0.9, 12, false}),
        {T(shape.x), T(w)}, {T(y), statistics, statistics, statistics, statistics, Absent()});
    const CaseOperand y_of_x = T(shape.x);
    add("ConvGradData", ops::ConvGradData{g}, {T(y), T(w)}, {T(shape.x)});
    add("ConvGradDataRelu", ops::ConvGradData{g, {}, {{Kind::kReluGrad, 0, 0, 2}}},
        {T(y), T(w), y_of_x}, {T(shape.x)});
    add("ConvGradDataAddsLeaky",
        ops::ConvGradData{
            g, {}, {{Kind::kAdd, 0, 0, 2}, {Kind::kAdd, 0, 0, 3}, {Kind::kReluGrad, 0.25f, 0, 4}}},
        {T(y), T(w), y_of_x, y_of_x, y_of_x}, {T(shape.x)});
    if (shape.is_for_forward) continue;
    add("ConvGradWeights", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {T(w).Wide(), bias},
        {0, 1});
    add("ConvGradWeightsNoBias", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {T(w).Wide()}, {0});
    add("ConvGradBiasOnly", ops::ConvGradWeights{g}, {T(shape.x), T(y)}, {Absent(), bias}, {1});
  }
  // So many weights that some kernels serve only these.
  const CaseOperand many_biases = T({1024}).Wide();
  cases->push_back({"ConvGradWeightsMany1x1",
                    ops::ConvGradWeights{{{1, 1}, {2, 1}, {0, 0}, {1, 1}, 1}},
                    {T({2, 256, 7, 5}), T({2, 1024, 4, 5})},
                    {T({1024, 256, 1, 1}).Wide(), many_biases},
                    {0, 1}});
  cases->push_back({"ConvGradWeightsMany3x3",
                    ops::ConvGradWeights{{{3, 3}, {1, 1}, {1, 0}, {1, 1}, 1}},
                    {T({2, 168, 4, 5}), T({2, 176, 4, 3})},
                    {T({176, 168, 3, 3}).Wide()},
                    {0}});
}

}  // namespace caffe::testing
