#include "caffe/ops/gemm.hpp"

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

}  // namespace caffe::ops
