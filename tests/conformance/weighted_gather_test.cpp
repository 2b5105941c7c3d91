// WeightedGather against its formula, where neighbours along the axis are next to each other and
// where they are not.
#include <gtest/gtest.h>

#include "caffe/ops/arrange.hpp"
#include "tests/support/op_case.hpp"

namespace caffe {
namespace {

using testing::CaseData;
using testing::CaseOperand;
using testing::Elements;
using testing::OpCase;
using testing::T;

TEST(WeightedGatherTest, EqualsItsFormula) {
  constexpr int64_t kFrom = 300, kTo = 530, kTaps = 3;
  CaseOperand places = T({kTo, kTaps}).Wide();
  places.value = [](const std::vector<Elements>&, int64_t i) {
    return i % 7 == 5 ? -1 : static_cast<double>(i * 31 % kFrom);
  };
  for (const int64_t inner : {1, 2, 70}) {
    const OpCase test{"WeightedGather",
                      ops::WeightedGather{1},
                      {T({5, kFrom, inner}), places, T({kTo, kTaps}).Wide()},
                      {T({5, kTo, inner})}};
    const CaseData data = MakeData(test, DType::kDouble);
    const Elements got = testing::RunReference(test, false, data)[0];
    for (int64_t i = 0; i < 5 * kTo * inner; ++i) {
      const int64_t outer = i / (kTo * inner), output = i / inner % kTo;
      double want = 0;
      for (int64_t k = output * kTaps; k < (output + 1) * kTaps; ++k) {
        const auto place = static_cast<int64_t>(data.inputs[1][k]);
        if (place < 0) break;
        want += data.inputs[2][k] * data.inputs[0][(outer * kFrom + place) * inner + i % inner];
      }
      ASSERT_NEAR(got[i], want, 1e-13) << "inner " << inner << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace caffe
