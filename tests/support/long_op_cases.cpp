// Sums that are long enough for a device to divide them among many threads and add up the parts.
#include "caffe/ops/broadcast.hpp"
#include "caffe/ops/class_losses.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/loss.hpp"
#include "caffe/ops/norm.hpp"
#include "caffe/ops/pair_losses.hpp"
#include "caffe/ops/reduce.hpp"
#include "caffe/ops/row_norm.hpp"
#include "tests/support/op_case_families.hpp"

namespace caffe::testing {
namespace {

using AddLong = std::function<void(const std::string&, Op, std::vector<CaseOperand>,
                                   std::vector<CaseOperand>, OperandSet)>;

// One sum per channel, of elements and of columns, in one part and in several.
void AddSumsPerChannel(const AddLong& add) {
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{3, 3, 25, 24},
                                                                            {2, 3, 70, 60},
                                                                            {100, 40},
                                                                            {700, 40},
                                                                            {3, 48, 25, 24},
                                                                            {2, 264, 11, 10}}) {
    const std::string suffix = "Long" + Shape(dims).ToString();
    const CaseOperand x = T(dims), c = T({dims[1]}).Wide(), variance = c.In(0.5, 2);
    add("BatchNormScale" + suffix, ops::BatchNorm{1e-3, {{ops::Pointwise::Kind::kRelu}}}, {x, c, c},
        {x, c, c}, {});
    add("BatchNormGradScale" + suffix, ops::BatchNormGrad{1e-3}, {x, c, variance, x, c, x},
        {x, c, c}, {1, 2});
    add("BatchNormGradResidual" + suffix, ops::BatchNormGrad{1e-3}, {x, c, variance, x, c, x},
        {x, c, c, x}, {1, 2});
    add("SumToAxes" + suffix, ops::SumToAxes{{1, 1}}, {x}, {c}, {0});
    add("SumOfProducts" + suffix, ops::SumToAxes{{1, 1}}, {x, x}, {c}, {0});
  }
}

// One row per block of threads, and several elements per thread.
void AddRows(const AddLong& add) {
  const CaseOperand x = T({3, 1500});
  add("SoftmaxLong", ops::Softmax{1}, {x.In(-5, 5)}, {x.Wide()}, {});
  add("SoftmaxGradLong", ops::SoftmaxGrad{1}, {x.Wide().In(0.001, 0.01), x}, {x}, {});
  add("ArgMaxLong", ops::ArgMax{1, 3}, {x}, {T({3, 3}).Wide(), T({3, 3}).Wide()}, {});
  const CaseOperand rows = T({3}).Wide().In(0.5, 2);
  add("MvnLong", ops::Mvn{1, true, 1e-3}, {x}, {x, rows}, {});
  add("MvnGradLong", ops::MvnGrad{1, true}, {x, rows, x}, {x}, {});
  const CaseOperand gamma = T({1500}).Wide();
  add("RmsNormLong", ops::RmsNorm{1, 1e-3}, {x, gamma}, {x, rows}, {});
  add("RmsNormGradLong", ops::RmsNormGrad{1}, {x, rows, x, gamma}, {x}, {});
  add("L2NormalizeLong", ops::L2Normalize{true, 1e-10}, {x}, {x, rows}, {});
  add("L2NormalizeGradLong", ops::L2NormalizeGrad{true}, {x, rows, x}, {x}, {});
  add("AccuracyLong", ops::Accuracy{1, 700, std::nullopt}, {x, T({3}).Wide().Labels(1500)},
      {T({}), T({1500})}, {});
  const CaseOperand similar = T({3}).Labels(2);
  add("ContrastiveLossLong", ops::ContrastiveLoss{30, false}, {x, x, similar}, {T({})}, {});
  const ops::ConvGeometry g{{3}, {1}, {1}, {1}, 1};
  add("ConvGradWeightsLong", ops::ConvGradWeights{g}, {T({2, 2, 700}), T({2, 3, 700})},
      {T({3, 2, 3}).Wide(), T({3}).Wide()}, {0, 1});
}

// One sum of all elements.
void AddTotals(const AddLong& add) {
  const CaseOperand x = T({4, 3, 5000}), p = x.Wide().In(0.01, 0.9),
                    labels = T({4, 5000}).Labels(3);
  const CaseOperand loss = T({}).Wide(), dloss = loss.In(100, 200);
  add("ReduceAllLong", ops::Reduce{ops::Reduction::kAbsSum, 1.5}, {x}, {loss}, {});
  add("EuclideanLossLong", ops::EuclideanLoss{}, {x, x}, {loss}, {});
  ops::LabelRule rule;
  rule.ignore_label = 1;
  rule.normalization = ops::Normalization::kValid;
  add("SoftmaxLossLong", ops::SoftmaxLoss{rule}, {p, labels}, {loss}, {});
  add("SoftmaxLossGradLong", ops::SoftmaxLossGrad{rule}, {p, labels, dloss}, {x}, {});
}

}  // namespace

void AddLongCases(std::vector<OpCase>* cases) {
  const AddLong add = [&](const std::string& name, Op op, std::vector<CaseOperand> in,
                          std::vector<CaseOperand> out, OperandSet accumulates) {
    cases->push_back({name, std::move(op), std::move(in), std::move(out), accumulates});
  };
  AddSumsPerChannel(add);
  AddRows(add);
  AddTotals(add);
}

}  // namespace caffe::testing
