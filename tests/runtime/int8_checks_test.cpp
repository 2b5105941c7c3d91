// The ops that programs in 8 bits may contain, and how they store weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "caffe/cpu/kernels/int8.hpp"
#include "caffe/ops/arrange.hpp"
#include "caffe/ops/conv.hpp"
#include "caffe/ops/convert.hpp"
#include "caffe/ops/gemm.hpp"
#include "caffe/ops/int8.hpp"
#include "caffe/ops/op_form.hpp"
#include "caffe/ops/pool.hpp"
#include "caffe/runtime/weight_rows.hpp"
#include "tests/support/error_text.hpp"

namespace caffe {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const Op& op, const std::vector<TensorDesc>& inputs, const TensorDesc& output,
                    DType data = DType::kInt8) {
  OperandCheck::Descs in;
  for (const TensorDesc& input : inputs) in.push_back(&input);
  try {
    OpForms::Get().Find(op.name())->check(op, {in, {&output}, data});
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TensorDesc Of(std::vector<int64_t> dims, DType dtype) {
  return {Shape(std::move(dims)), dtype};
}

TEST(Int8Checks, ConvolutionsReadNumbersAndFloatWeights) {
  const ops::Conv op{{{3, 3}, {1, 1}, {1, 1}, {1, 1}, 1}};
  const TensorDesc x = Of({1, 4, 5, 5}, DType::kUInt8), w = Of({2, 4, 3, 3}, DType::kFloat);
  for (const DType made : {DType::kUInt8, DType::kInt8, DType::kFloat})
    EXPECT_EQ(ErrorOf(op, {x, w}, Of({1, 2, 5, 5}, made)), "");
  const TensorDesc y = Of({1, 2, 5, 5}, DType::kFloat);
  EXPECT_THAT(ErrorOf(op, {Of({1, 4, 5, 5}, DType::kFloat), w}, y),
              HasSubstr("an operand is float where 8-bit numbers are read"));
  EXPECT_THAT(ErrorOf(op, {x, Of({2, 4, 3, 3}, DType::kInt8)}, y),
              HasSubstr("weights of 8-bit data are int8; they must be floats"));
  EXPECT_THAT(ErrorOf(op, {x, w}, Of({1, 2, 5, 5}, DType::kDouble)),
              HasSubstr("an operand is double where 8-bit numbers or floats are computed"));
  EXPECT_THAT(ErrorOf(op, {x, w}, y, DType::kFloat),
              HasSubstr("an operand is uint8 where float is computed"));
  EXPECT_THAT(
      ErrorOf(op, {Of({1, 8000, 5, 5}, DType::kUInt8), Of({2, 8000, 3, 3}, DType::kFloat)}, y),
      HasSubstr("sums of 72000 products of 8-bit numbers; 66311 fit 32 bits"));
}

TEST(Int8Checks, ProductsReadNumbersAndFloatWeights) {
  const ops::Gemm op{.rows = 2, .columns = 3, .inner = 4, .transpose_b = true};
  const TensorDesc b = Of({3, 4}, DType::kFloat), c = Of({2, 3}, DType::kInt8);
  EXPECT_EQ(ErrorOf(op, {Of({2, 4}, DType::kInt8), b}, c), "");
  EXPECT_THAT(ErrorOf(op, {Of({2, 4}, DType::kFloat), b}, c), HasSubstr("8-bit numbers are read"));
  EXPECT_THAT(ErrorOf(op, {Of({2, 4}, DType::kInt8), Of({3, 4}, DType::kUInt8)}, c),
              HasSubstr("they must be floats"));
}

TEST(Int8Checks, PairsOfMatricesAreNumbers) {
  const ops::BatchedGemm op{.rows = 2,
                            .columns = 3,
                            .inner = 4,
                            .batch = {5},
                            .a_steps = {1},
                            .b_steps = {1},
                            .c_steps = {1}};
  const TensorDesc a = Of({5, 2, 4}, DType::kUInt8), b = Of({5, 4, 3}, DType::kInt8),
                   c = Of({5, 2, 3}, DType::kFloat);
  EXPECT_EQ(ErrorOf(op, {a, b}, c), "");
  EXPECT_EQ(ErrorOf(op, {a, b}, Of({5, 2, 3}, DType::kInt8)), "");
  EXPECT_THAT(ErrorOf(op, {a, Of({5, 4, 3}, DType::kFloat)}, c),
              HasSubstr("8-bit numbers are read"));
  ops::BatchedGemm sum = op;
  sum.c_steps = {0};
  EXPECT_THAT(ErrorOf(sum, {a, b}, Of({1, 2, 3}, DType::kFloat)),
              HasSubstr("8-bit matrices are not multiplied here: it adds up products"));
  ops::BatchedGemm deep = op;
  deep.inner = 40000;
  EXPECT_THAT(ErrorOf(deep, {Of({5, 2, 40000}, DType::kUInt8), Of({5, 40000, 3}, DType::kInt8)}, c),
              HasSubstr("its sums of 40000 products do not fit 32 bits, which hold 33025"));
}

TEST(Int8Checks, MovesKeepTheType) {
  const TensorDesc x = Of({2, 6}, DType::kUInt8);
  EXPECT_THAT(ErrorOf(ops::Permute{{1, 0}}, {x}, Of({6, 2}, DType::kFloat)), HasSubstr("one type"));
  EXPECT_EQ(ErrorOf(ops::View{}, {x}, Of({12}, DType::kUInt8)), "");
  EXPECT_THAT(ErrorOf(ops::View{}, {x}, Of({12}, DType::kFloat)), HasSubstr("one type"));
  EXPECT_THAT(ErrorOf(ops::Concat{0}, {x, Of({1, 6}, DType::kFloat)}, Of({3, 6}, DType::kUInt8)),
              HasSubstr("one type"));
  EXPECT_THAT(ErrorOf(ops::SliceOf{}, {x}, Of({2, 3}, DType::kFloat)), HasSubstr("one type"));
  const ops::MaxPool pool{{{2, 2}, {1, 1}, {0, 0}}};
  EXPECT_THAT(ErrorOf(pool, {Of({1, 1, 2, 2}, DType::kUInt8)}, Of({1, 1, 1, 1}, DType::kFloat)),
              HasSubstr("one type"));
}

TEST(Int8Checks, SumsOfAveragesFit32Bits) {
  const TensorDesc y = Of({1, 1, 1, 1}, DType::kUInt8);
  const auto error_of = [&](int64_t edge) {
    const ops::AvePool all{{{edge, edge}, {1, 1}, {0, 0}}};
    return ErrorOf(all, {Of({1, 1, edge, edge}, DType::kUInt8)}, y);
  };
  EXPECT_EQ(error_of(2901), "");
  EXPECT_THAT(error_of(2903), HasSubstr("sums of 8427409 numbers do not fit 32 bits"));
}

TEST(Int8Checks, NumbersBecomeFloatsAlone) {
  const TensorDesc x = Of({2, 6}, DType::kUInt8);
  for (const DType to : {DType::kFloat, DType::kInt8, DType::kUInt8})
    EXPECT_EQ(ErrorOf(ops::Cast{}, {x}, Of({2, 6}, to), DType::kFloat), "");
  for (const DType to : {DType::kDouble, DType::kFloat16, DType::kBFloat16}) {
    EXPECT_THAT(ErrorOf(ops::Cast{}, {x}, Of({2, 6}, to), DType::kFloat),
                HasSubstr("are not converted into each other"));
  }
}

// Numbers and scale of a row, as kernels compute them.
std::pair<float, std::vector<int8_t>> Quantised(const std::vector<float>& row) {
  std::vector<int8_t> numbers(row.size());
  const float scale =
      cpu::QuantizeRow(row.data(), static_cast<int64_t>(row.size()), 1, numbers.data());
  return {scale, numbers};
}

TEST(WeightRows, KernelsMakeTheSameOfThem) {
  for (int seed = 0; seed < 2000; ++seed) {
    std::vector<float> row(37), again(37);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = std::sin(static_cast<float>(seed) + 1.7F * static_cast<float>(i)) *
               std::pow(10.0F, static_cast<float>(seed % 70) - 36);
    }
    if (seed % 9 == 0) std::ranges::fill(row, 0.0F);
    const runtime::WeightRows rows{1};
    std::vector<char> numbers(runtime::NumberBytes(rows, 37));
    runtime::EncodeWeights(rows, row.data(), 37, numbers.data());
    runtime::DecodeWeights(rows, numbers.data(), 37, again.data());
    EXPECT_EQ(Quantised(again), Quantised(row)) << seed;
  }
}

TEST(WeightRows, ColumnsLieSideBySide) {
  const std::vector<float> weights = {1, -30, 0.5F, 20, -1, 10};  // 3 rows of 2 columns
  std::vector<float> again(6);
  const runtime::WeightRows rows{2, true};
  std::vector<char> numbers(runtime::NumberBytes(rows, 6));
  runtime::EncodeWeights(rows, weights.data(), 6, numbers.data());
  runtime::DecodeWeights(rows, numbers.data(), 6, again.data());
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(again[i], weights[i], i % 2 == 0 ? 0.004 : 0.12);
  EXPECT_EQ(again[0], 1);
  EXPECT_EQ(again[1], -30);
}

}  // namespace
}  // namespace caffe
