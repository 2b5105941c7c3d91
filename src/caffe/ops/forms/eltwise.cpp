#include "caffe/ops/eltwise.hpp"

#include "caffe/ops/forms/fields.hpp"

namespace caffe::ops {

CAFFE_FIELDS(EltwiseSum, coefficients, epilogue)
CAFFE_NO_FIELDS(EltwiseProd)
CAFFE_NO_FIELDS(EltwiseMax)

static void CheckSeveral(const OperandCheck& check) {
  check.AllLikeOutput();
  Require(check.num_inputs() >= 2, "it has one operand, but takes two or more");
}

static void CheckOperands(const EltwiseSum& op, const OperandCheck& check) {
  CheckSeveral(check);
  check.Epilogue(op.epilogue, check.num_inputs());
  Require(op.coefficients.empty() || op.coefficients.size() == check.num_inputs(),
          op.coefficients.size(), " coefficients for ", check.num_inputs(), " operands");
}

static void CheckOperands(const EltwiseProd&, const OperandCheck& check) {
  CheckSeveral(check);
}

static void CheckOperands(const EltwiseMax&, const OperandCheck& check) {
  CheckSeveral(check);
}

CAFFE_REGISTER_OP_FORM(EltwiseSum);
CAFFE_REGISTER_OP_FORM(EltwiseProd);
CAFFE_REGISTER_OP_FORM(EltwiseMax);

}  // namespace caffe::ops
