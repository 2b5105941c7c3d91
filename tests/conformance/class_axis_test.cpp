// Softmax, its gradients and accuracy against their formulas: rows of few and of many classes, and
// positions whose numbers of a class are next to each other.
#include <gtest/gtest.h>

#include <cmath>

#include "caffe/ops/loss.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using testing::CaseData;
using testing::CaseOperand;
using testing::Elements;
using testing::OpCase;
using testing::T;

void ExpectResult(const OpCase& test, const CaseData& data, const Elements& want) {
  const Elements got = testing::RunReference(test, false, data)[0];
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-13) << test.name << ", element " << i;
}

class ClassAxisTest : public ::testing::TestWithParam<std::vector<int64_t>> {
 protected:
  const Shape shape_{GetParam()};
  const ops::ClassView view_{shape_, 1};
  const CaseOperand x_ = T(GetParam()).In(-5, 5);
};

TEST_P(ClassAxisTest, Softmax) {
  const OpCase test{"Softmax", ops::Softmax{1}, {x_}, {x_}};
  const CaseData data = MakeData(test, DType::kDouble);
  const Elements& x = data.inputs[0];
  Elements want(x.size());
  for (int64_t position = 0; position < view_.positions(); ++position) {
    double sum = 0;
    for (int64_t c = 0; c < view_.classes; ++c) sum += std::exp(x[view_.At(position, c)]);
    for (int64_t c = 0; c < view_.classes; ++c)
      want[view_.At(position, c)] = std::exp(x[view_.At(position, c)]) / sum;
  }
  ExpectResult(test, data, want);
}

TEST_P(ClassAxisTest, SoftmaxGradient) {
  const OpCase test{"SoftmaxGrad", ops::SoftmaxGrad{1}, {x_.In(0.01, 0.2), x_}, {x_}};
  const CaseData data = MakeData(test, DType::kDouble);
  const Elements &y = data.inputs[0], &dy = data.inputs[1];
  Elements want(y.size());
  for (int64_t position = 0; position < view_.positions(); ++position) {
    double dot = 0;
    for (int64_t c = 0; c < view_.classes; ++c)
      dot += y[view_.At(position, c)] * dy[view_.At(position, c)];
    for (int64_t c = 0; c < view_.classes; ++c) {
      const int64_t at = view_.At(position, c);
      want[at] = y[at] * (dy[at] - dot);
    }
  }
  ExpectResult(test, data, want);
}

TEST_P(ClassAxisTest, GradientOfTheLoss) {
  ops::LabelRule rule;
  rule.ignore_label = 1;
  rule.normalization = ops::Normalization::kFull;
  const CaseOperand labels = T({view_.outer, view_.inner}).Labels(view_.classes);
  const OpCase test{"SoftmaxLossGrad",
                    ops::SoftmaxLossGrad{.rule = rule},
                    {x_.In(0.01, 0.9), labels, T({}).In(100, 200)},
                    {x_}};
  const CaseData data = MakeData(test, DType::kDouble);
  const Elements &p = data.inputs[0], &label = data.inputs[1];
  const double factor = data.inputs[2][0] / static_cast<double>(view_.positions());
  Elements want(p.size());
  for (int64_t position = 0; position < view_.positions(); ++position) {
    for (int64_t c = 0; c < view_.classes; ++c) {
      const int64_t at = view_.At(position, c);
      const bool is_right = label[position] == static_cast<double>(c);
      want[at] = label[position] == 1 ? 0 : (p[at] - is_right) * factor;
    }
  }
  ExpectResult(test, data, want);
}

TEST_P(ClassAxisTest, Accuracy) {
  const CaseOperand labels = T({view_.outer, view_.inner}).Labels(view_.classes);
  // Few levels, so that scores are equal now and then.
  CaseOperand x = x_;
  x.value = [](const std::vector<Elements>&, int64_t i) {
    return static_cast<double>(i * 7919 % 1009 % 16);
  };
  for (const int top_k : {1, 3}) {
    const OpCase test{
        "Accuracy", ops::Accuracy{1, top_k, 1}, {x, labels}, {T({}), T({view_.classes})}};
    const CaseData data = MakeData(test, DType::kDouble);
    const Elements &scores = data.inputs[0], &label = data.inputs[1];
    Elements sizes(view_.classes), right(view_.classes);
    double all = 0, all_right = 0;
    for (int64_t position = 0; position < view_.positions(); ++position) {
      const auto of_label = static_cast<int64_t>(label[position]);
      if (of_label == 1) continue;
      int better = 0;
      for (int64_t c = 0; c < view_.classes; ++c) {
        better +=
            c != of_label && scores[view_.At(position, c)] >= scores[view_.At(position, of_label)];
      }
      ++all;
      ++sizes[of_label];
      if (better >= top_k) continue;
      ++all_right;
      ++right[of_label];
    }
    const std::vector<Elements> got = testing::RunReference(test, false, data);
    EXPECT_DOUBLE_EQ(got[0][0], all_right / all);
    for (int64_t c = 0; c < view_.classes; ++c)
      EXPECT_DOUBLE_EQ(got[1][c], sizes[c] == 0 ? 0 : right[c] / sizes[c]) << top_k;
  }
}

using Dims = std::vector<int64_t>;

INSTANTIATE_TEST_SUITE_P(Shapes, ClassAxisTest,
                         ::testing::Values(Dims{37, 21}, Dims{16, 3}, Dims{5, 70}, Dims{3, 1000},
                                           Dims{2, 5, 300}, Dims{3, 17, 7, 1}, Dims{2, 66, 129}));

}  // namespace
}  // namespace caffe
