#include "caffe/ops/gemm.hpp"

#include <limits>

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/int8.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

CAFFE_FIELDS(Gemm, rows, columns, inner, transpose_a, transpose_b, epilogue)

static void CheckOperands(const Gemm& op, const OperandCheck& check) {
  check.Epilogue(op.epilogue, Gemm::kBias + 1);
  for (const int64_t size : {op.rows, op.columns, op.inner})
    Require(size >= 0 && size <= kMostPlaces, "a matrix has ", size, " rows or columns");
  const TensorDesc &a = check.input(Gemm::kA), &b = check.input(Gemm::kB), &c = check.output();
  for (const TensorDesc* operand : {&a, &b, &c}) OperandCheck::IsPlain(*operand);
  if (check.is_in_8_bits()) {
    OperandCheck::IsNumbers(a);
    Require(b.dtype == DType::kFloat, "weights of 8-bit data are ", Name(b.dtype),
            "; they must be floats");
    Require(op.inner <= kMostSummands, "sums of ", op.inner, " products of 8-bit numbers; ",
            kMostSummands, " fit 32 bits");
  }
  check.IsData(a);
  check.IsData(b);
  if (c.dtype != DType::kFloat) check.IsData(c);
  OperandCheck::SameCount(a.count(), op.rows * op.inner);
  OperandCheck::SameCount(b.count(), op.inner * op.columns);
  OperandCheck::SameCount(c.count(), op.rows * op.columns);
  check.IsParameter(Gemm::kBias, op.columns);
  for (const Pointwise& entry : op.epilogue) {
    if (entry.kind != Pointwise::Kind::kScale && entry.kind != Pointwise::Kind::kShift) continue;
    Require(c.shape[0] == op.rows && c.shape[1] == op.columns, "an epilogue scales ", c.shape,
            " by channels, whose matrix has ", op.rows, "x", op.columns);
  }
}

CAFFE_REGISTER_OP_FORM(Gemm);

CAFFE_FIELDS(BatchedGemm, rows, columns, inner, transpose_a, transpose_b, batch, a_steps, b_steps,
             c_steps)

// Returns the number of matrices that the steps reach.
static int64_t Reached(const BatchedGemm& op, const std::vector<int64_t>& steps) {
  Require(steps.size() == op.batch.size(), "a batch of ", op.batch.size(), " axes has ",
          steps.size(), " steps");
  int64_t last = 0;
  for (size_t k = 0; k < steps.size(); ++k) {
    Require(op.batch[k] >= 0 && op.batch[k] <= kMostPlaces, "a batch has an axis of ", op.batch[k]);
    Require(steps[k] >= 0 && steps[k] <= kMostPlaces, "a step moves by ", steps[k], " matrices");
    last += std::max<int64_t>(op.batch[k] - 1, 0) * steps[k];
    Require(last <= kMostPlaces, "steps reach ", last, " matrices");
  }
  return op.items() == 0 ? 0 : last + 1;
}

static void IsMatrices(const TensorDesc& operand, int64_t matrices, int64_t rows, int64_t columns) {
  const int64_t elements = rows * columns;
  Require(elements == 0 || matrices <= std::numeric_limits<int64_t>::max() / elements, matrices,
          " matrices have ", rows, "x", columns, " elements each");
  OperandCheck::SameCount(operand.count(), matrices * elements);
}

static void CheckOperands(const BatchedGemm& op, const OperandCheck& check) {
  check.AtMost(2);
  for (const int64_t size : {op.rows, op.columns, op.inner})
    Require(size >= 0 && size <= kMostPlaces, "a matrix has ", size, " rows or columns");
  Require(op.batch.size() <= 8, "a batch has ", op.batch.size(), " axes; at most 8 are possible");
  const TensorDesc &a = check.input(BatchedGemm::kA), &b = check.input(BatchedGemm::kB),
                   &c = check.output();
  for (const TensorDesc* operand : {&a, &b, &c}) OperandCheck::IsPlain(*operand);
  if (check.is_in_8_bits()) {
    OperandCheck::IsNumbers(a);
    OperandCheck::IsNumbers(b);
    const std::string why = WhyNotPairs(op);
    Require(why.empty(), "8-bit matrices are not multiplied here: ", why);
  }
  check.IsData(a);
  check.IsData(b);
  if (c.dtype != DType::kFloat) check.IsData(c);
  IsMatrices(a, Reached(op, op.a_steps), op.rows, op.inner);
  IsMatrices(b, Reached(op, op.b_steps), op.inner, op.columns);
  IsMatrices(c, Reached(op, op.c_steps), op.rows, op.columns);
}

CAFFE_REGISTER_OP_FORM(BatchedGemm);

}  // namespace caffe::ops
