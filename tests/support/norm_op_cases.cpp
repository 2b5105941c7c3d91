#include "caffe/ops/fold.hpp"
#include "caffe/ops/norm.hpp"
#include "tests/support/fused_regions.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {

void AddNormCases(std::vector<OpCase>* cases) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{
           {4, 5, 3, 4}, {2, 64, 5, 7}, {3, 17, 1, 1}, {8, 6}, {5, 3, 7}}) {
    const int64_t channels = dims[1];
    const std::string suffix = Shape(dims).ToString();
    const CaseOperand x = T(dims), c = T({channels}).Wide(), variance = c.In(0.5, 2);
    const auto add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                         std::vector<CaseOperand> out, OperandSet accumulates = {}) {
      cases->push_back({name + suffix, std::move(op), std::move(in), std::move(out), accumulates});
    };
    const CaseOperand one = T({1}).Wide().In(1.5, 2.5);
    for (const bool relu : {false, true}) {
      const std::string r = relu ? "Relu" : "";
      const ops::Epilogue after = relu ? ops::Epilogue{Relu()} : ops::Epilogue{};
      const auto added = [&](int operand) {
        ops::Epilogue epilogue = {{ops::Pointwise::Kind::kAdd, 0, 0, operand}};
        epilogue.insert(epilogue.end(), after.begin(), after.end());
        return epilogue;
      };
      add("BatchNorm" + r, ops::BatchNorm{1e-3, after}, {x}, {x, c, c});
      add("BatchNormScale" + r, ops::BatchNorm{1e-3, after}, {x, c, c}, {x, c, c});
      add("BatchNormRunning" + r,
          ops::BatchNorm{1e-3, after, ops::UpdateRunningStatistics{0.9, 12, relu}}, {x, c, c},
          {x, c, c, c, c, one});
      add("BatchNormInference" + r, ops::BatchNormInference{1e-3, after}, {x, c, variance, one},
          {x});
      add("BatchNormInferenceScale" + r, ops::BatchNormInference{1e-3, after},
          {x, c, variance, one, c, c}, {x});
      add("BatchNormResidual" + r, ops::BatchNorm{1e-3, added(3)}, {x, Absent(), Absent(), x},
          {x, c, c});
      add("BatchNormScaleResidual" + r, ops::BatchNorm{1e-3, added(3)}, {x, c, c, x}, {x, c, c});
      add("BatchNormInferenceResidual" + r, ops::BatchNormInference{1e-3, added(6)},
          {x, c, variance, one, c, c, x}, {x});
      add("BatchNormInferenceNoFactor" + r, ops::BatchNormInference{1e-3, after},
          {x, c, variance, Absent(), c, c}, {x});
      std::vector<CaseOperand> in = {x, c, variance, x, Absent()};
      if (relu) in.push_back(x);
      add("BatchNormGrad" + r, ops::BatchNormGrad{1e-3}, in, {x});
      in[ops::BatchNormGrad::kGamma] = c;
      add("BatchNormGradScale" + r, ops::BatchNormGrad{1e-3}, in, {x, c, c}, {1, 2});
      add("BatchNormGradResidual" + r, ops::BatchNormGrad{1e-3}, in, {x, c, Absent(), x}, {1});
      add("BatchNormGradOnlyResidual" + r, ops::BatchNormGrad{1e-3}, in,
          {Absent(), Absent(), Absent(), x});
      add("BatchNormGradNoData" + r, ops::BatchNormGrad{1e-3}, in, {Absent(), c, c}, {1, 2});
    }
    const std::vector<CaseOperand> of_relu = {x, c, variance, x, c, c},
                                   unscaled = {x, c, variance, x, Absent(), Absent()};
    add("BatchNormReluGrad", BatchNormReluGrad(1e-3, x.shape), of_relu, {x, c, c}, {1, 2});
    add("BatchNormReluGradUnscaled", BatchNormReluGrad(1e-3, x.shape), unscaled, {x});
    add("BatchNormReluGradNoData", BatchNormReluGrad(1e-3, x.shape), of_relu, {Absent(), c, c},
        {1, 2});
    add("ChannelStatistics", ops::ChannelStatistics{}, {x}, {c, c});
    // Parts that begin at whole packs of 16 bytes in some types, and parts that do not.
    for (const int64_t offset : {8, 5}) {
      std::vector<int64_t> wider = dims;
      wider[1] += offset == 8 ? 24 : 9;
      const CaseOperand whole = T(wider);
      const auto add_part = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                                std::vector<CaseOperand> out, OperandSet accumulates = {}) {
        add(StrCat(name, "At", offset), std::move(op), std::move(in), std::move(out), accumulates);
      };
      const ops::Epilogue relu = {Relu()};
      add_part("BatchNormInto", NormInto(ops::BatchNorm{1e-3}, offset, x.shape),
               {x, Absent(), Absent(), whole}, {whole, c, c});
      add_part("BatchNormScaleReluInto", NormInto(ops::BatchNorm{1e-3, relu}, offset, x.shape),
               {x, c, c, whole}, {whole, c, c});
      add_part("BatchNormInferenceInto",
               NormInto(ops::BatchNormInference{1e-3, relu}, offset, x.shape),
               {x, c, variance, one, c, c, whole}, {whole});
      add_part("BatchNormInferenceNoFactorInto",
               NormInto(ops::BatchNormInference{1e-3}, offset, x.shape),
               {x, c, variance, Absent(), c, c, whole}, {whole});
      add_part("BatchNormGradOfPart",
               NormGradOfPart(ops::BatchNormGrad{1e-3}, offset, x.shape, false),
               {whole, x, c, variance, c}, {x, c, c}, {1, 2});
      add_part("BatchNormGradReluOfPart",
               NormGradOfPart(ops::BatchNormGrad{1e-3}, offset, x.shape, true),
               {whole, x, c, variance, Absent(), x}, {x, c, c}, {1, 2});
      add_part("BatchNormReluGradOfPart", BatchNormReluGradOfPart(1e-3, offset, x.shape),
               {x, c, variance, whole, c, c}, {x, c, c}, {1, 2});
      add_part("BatchNormReluGradOfPartNoData", BatchNormReluGradOfPart(1e-3, offset, x.shape),
               {x, c, variance, whole, c, c}, {Absent(), c, c}, {1, 2});
    }
    const std::vector<int64_t> rows = {channels, 3, 2};
    const CaseOperand w = T(rows).Wide();
    add("FoldChannels", ops::FoldChannels{1e-3}, {w, c, c, variance, one, c, c}, {w, c});
    add("FoldChannelsNoBias", ops::FoldChannels{1e-3},
        {w, Absent(), c, variance, one, Absent(), Absent()}, {w, c});
    add("FoldChannelsScale", ops::FoldChannels{1e-3},
        {w, c, Absent(), Absent(), Absent(), c, Absent()}, {w, c});
    add("BatchNormInferenceGrad", ops::BatchNormInferenceGrad{1e-3}, {x, variance, one}, {x});
    add("BatchNormInferenceGradScale", ops::BatchNormInferenceGrad{1e-3}, {x, variance, one, c},
        {x});
    add("BatchNormInferenceGradNoFactor", ops::BatchNormInferenceGrad{1e-3},
        {x, variance, Absent(), c}, {x});
  }
  const CaseOperand c = T({7}).Wide(), one = T({1}).Wide();
  for (const bool sums : {true, false}) {
    for (const uint64_t pass : {uint64_t{0}, uint64_t{3}}) {
      cases->push_back({StrCat("UpdateRunningStatistics", sums ? "Sums" : "Average", pass),
                        ops::UpdateRunningStatistics{0.9, 12, sums},
                        {c, c},
                        {c, c, one},
                        {},
                        pass});
    }
  }
  for (const uint64_t pass : {uint64_t{0}, uint64_t{3}}) {
    cases->push_back({StrCat("UpdateRunningStatisticsNoCopy", pass),
                      ops::UpdateRunningStatistics{0.9, 1, false, false},
                      {c, c},
                      {c, c, Absent()},
                      {},
                      pass});
  }
  for (const int64_t size : {3, 5}) {
    for (const std::vector<int64_t>& dims :
         {std::vector<int64_t>{2, 9, 4, 5}, {2, 24, 3, 5}, {3, 8}}) {
      const CaseOperand x = T(dims);
      for (const double beta : {0.75, 0.6}) {
        const std::string name =
            StrCat(size, beta == 0.75 ? "" : "OddBeta", Shape(dims).ToString());
        cases->push_back({"Lrn" + name, ops::Lrn{size, 0.7, beta, 2}, {x}, {x}});
        cases->push_back({"LrnGrad" + name, ops::LrnGrad{size, 0.7, beta, 2}, {x, x}, {x}});
        const ops::Pointwise relu_grad{ops::Pointwise::Kind::kReluGrad, 0.25f, 0, 0};
        cases->push_back(
            {"LrnGradRelu" + name, ops::LrnGrad{size, 0.7, beta, 2, {relu_grad}}, {x, x}, {x}});
      }
    }
    const CaseOperand x = T({2, 9, 4, 5}), scale = x.Wide().In(1, 2);
    cases->push_back(
        {StrCat("LrnWithin", size), ops::LrnWithin{size, 0.7, 0.75}, {x}, {x, x.Wide()}});
    cases->push_back({StrCat("LrnWithinNoScale", size), ops::LrnWithin{size, 0.7, 0.75}, {x}, {x}});
    cases->push_back(
        {StrCat("LrnWithinGrad", size), ops::LrnWithinGrad{size, 0.7, 0.75}, {x, scale, x}, {x}});
  }
}

}  // namespace caffe::testing
