// Kernels of products of pairs of matrices of quantised data.
#include <array>
#include <limits>

#include "caffe/ops/arrange.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/int8.hpp"
#include "tests/conformance/int8_kernels.hpp"

namespace caffe::int8_kernels {
namespace {

struct PairsCase {
  std::vector<int64_t> batch, a_steps, b_steps, c_steps;
  int64_t a, b, c;  // matrices
};

const std::vector<PairsCase> kPairs = {
    {{}, {}, {}, {}, 1, 1, 1},
    {{6}, {1}, {1}, {1}, 6, 6, 6},
    {{5}, {1}, {0}, {1}, 5, 1, 5},
    {{2, 3}, {3, 1}, {1, 0}, {3, 1}, 6, 2, 6},
    {{2, 3, 2}, {6, 2, 1}, {2, 0, 1}, {6, 2, 1}, 12, 4, 12},
};

ops::BatchedGemm PairsOf(const PairsCase& test, int64_t rows, int64_t columns, int64_t inner) {
  return {.rows = rows,
          .columns = columns,
          .inner = inner,
          .batch = test.batch,
          .a_steps = test.a_steps,
          .b_steps = test.b_steps,
          .c_steps = test.c_steps};
}

// The sums of products of numbers, in the order of the result's elements.
Values Sums(const ops::BatchedGemm& op, const Numbers& a, const Numbers& b, int64_t matrices) {
  Values sums(static_cast<size_t>(matrices * op.rows * op.columns));
  for (int64_t place = 0; place < op.items(); ++place) {
    const ops::MatrixPair pair = PairAt(op, 0, op.batch.size(), place);
    for (int64_t r = 0; r < op.rows; ++r) {
      for (int64_t k = 0; k < op.columns; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < op.inner; ++i) {
          const int64_t at_a = op.transpose_a ? i * op.rows + r : r * op.inner + i;
          const int64_t at_b = op.transpose_b ? k * op.inner + i : i * op.columns + k;
          sum += a.numbers[pair.a * op.rows * op.inner + at_a] *
                 b.numbers[pair.b * op.inner * op.columns + at_b];
        }
        sums[(pair.c * op.rows + r) * op.columns + k] = sum;
      }
    }
  }
  return sums;
}

void CheckPairs(Device& device, const ops::BatchedGemm& op, const PairsCase& test, DType of_a,
                std::set<std::string>* served) {
  const DType of_b = DType::kInt8;
  Numbers a = Random(Describe({test.a, op.rows, op.inner}, of_a), 1);
  Numbers b = Random(Describe({test.b, op.inner, op.columns}, of_b), 2);
  const Values sums = Sums(op, a, b, test.c);
  const std::string what =
      StrCat("BatchedGemm[", Op(op).Attributes(), "] of ", Name(of_a), " and ", Name(of_b));
  for (const KernelCandidate& candidate : Candidates(device.kind(), op)) {
    // Scales of 1 and a float result: the sums, which floats hold exactly.
    a.desc.scale = b.desc.scale = 1;
    Numbers exact{Describe({test.c, op.rows, op.columns}, DType::kFloat), {}, {}};
    const auto refusal = RunKernel(device, candidate, op, {&a, &b}, &exact, false);
    if (refusal) {
      EXPECT_NE(candidate.rank, KernelRank::kReference) << what << ": " << *refusal;
      continue;
    }
    served->insert(candidate.name);
    ASSERT_EQ(exact.numbers, sums) << what << ", " << candidate.name;
    if (op.rows > 40) continue;
    a.desc.scale = 0.011F, b.desc.scale = 0.02F;
    const double factor = static_cast<double>(a.desc.scale) * static_cast<double>(b.desc.scale);
    Values want = sums;
    for (double& value : want) value *= factor;
    for (const DType out : {DType::kUInt8, DType::kInt8, DType::kFloat}) {
      Numbers got{Describe({test.c, op.rows, op.columns}, out, Is8Bit(out) ? 0.13F : 1), {}, {}};
      ASSERT_EQ(RunKernel(device, candidate, op, {&a, &b}, &got, false), std::nullopt);
      ExpectNumbers(StrCat(what, ", ", candidate.name, ", to ", Name(out)), got, want);
    }
  }
}

TEST_P(Int8KernelTest, PairsOfMatricesGiveExactSums) {
  std::set<std::string> served;
  for (const auto& [rows, columns, inner] :
       std::vector<std::array<int64_t, 3>>{{5, 7, 9}, {33, 16, 40}, {1, 50, 17}, {65, 70, 100}}) {
    for (const PairsCase& test : kPairs) {
      for (const bool ta : {false, true}) {
        for (const bool tb : {false, true}) {
          ops::BatchedGemm op = PairsOf(test, rows, columns, inner);
          op.transpose_a = ta, op.transpose_b = tb;
          for (const DType of_a : {DType::kUInt8, DType::kInt8}) {
            if (of_a == DType::kUInt8 && GetParam() != DeviceKind::kCpu) continue;
            CheckPairs(*device_, op, test, of_a, &served);
          }
        }
      }
    }
  }
  ExpectAllServed(*device_, PairsOf(kPairs[1], 5, 7, 9), {}, served);
}

// Every number is the largest in magnitude, and a sum has as many products as are allowed.
TEST_P(Int8KernelTest, PairsOfMatricesHoldTheLargestSums) {
  const int64_t inner = ops::kMostSummandsOfData;
  const ops::BatchedGemm op = PairsOf(kPairs[0], 2, 3, inner);
  for (const DType of_a : {DType::kUInt8, DType::kInt8}) {
    if (of_a == DType::kUInt8 && GetParam() != DeviceKind::kCpu) continue;
    const double largest = of_a == DType::kUInt8 ? 255 : -128;
    Numbers a{Describe({2, inner}, of_a), Values(2 * inner, largest), {}};
    Numbers b{Describe({inner, 3}, DType::kInt8), Values(3 * inner, -128), {}};
    a.Store(), b.Store();
    const double want = largest * -128 * static_cast<double>(inner);
    ASSERT_LT(std::abs(want), std::numeric_limits<int32_t>::max());
    for (const KernelCandidate& candidate : Candidates(op)) {
      Numbers y{Describe({2, 3}, DType::kFloat), {}, {}};
      if (Run(candidate, op, {&a, &b}, &y)) continue;
      for (const double number : y.numbers)
        EXPECT_EQ(number, static_cast<double>(static_cast<float>(want))) << candidate.name;
    }
  }
}

TEST_P(Int8KernelTest, PairsOfMatricesAreNotAddedUp) {
  PairsCase sum = kPairs[1];
  sum.c_steps = {0};
  EXPECT_EQ(ops::WhyNotPairs(PairsOf(sum, 2, 3, 4)), "it adds up products of matrices");
  EXPECT_EQ(ops::WhyNotPairs(PairsOf(kPairs[1], 2, 3, ops::kMostSummandsOfData)), "");
  EXPECT_EQ(ops::WhyNotPairs(PairsOf(kPairs[1], 2, 3, ops::kMostSummandsOfData + 1)),
            "its sums of 33026 products do not fit 32 bits, which hold 33025");
}

TEST_P(Int8KernelTest, PermutationsMoveBytes) {
  Numbers x = Random(Describe({2, 3, 5, 4}, DType::kInt8, 0.1F), 1);
  const ops::Permute op{{0, 2, 1, 3}};
  Numbers y{Describe({2, 5, 3, 4}, DType::kInt8, 0.1F), {}, {}};
  const auto& all = KernelRegistry::Get().Candidates(GetParam(), Op(op).type());
  ASSERT_EQ(Run(all.back(), op, {&x}, &y), std::nullopt);
  for (int64_t i = 0; i < y.desc.count(); ++i) {
    const int64_t n = i / 60, row = i / 12 % 5, line = i / 4 % 3, column = i % 4;
    EXPECT_EQ(y.numbers[i], x.numbers[((n * 3 + line) * 5 + row) * 4 + column]) << i;
  }
}

}  // namespace
}  // namespace caffe::int8_kernels
