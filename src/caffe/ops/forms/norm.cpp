#include "caffe/ops/norm.hpp"

#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/window.hpp"

namespace caffe::ops {

CAFFE_FIELDS(BatchNormInference, eps, epilogue)
CAFFE_FIELDS(Lrn, size, alpha, beta, k)
CAFFE_FIELDS(LrnWithin, size, alpha, beta)

static void CheckOperands(const BatchNormInference& op, const OperandCheck& check) {
  using Input = BatchNormInference::Input;
  check.Epilogue(op.epilogue, Input::kBeta + 1);
  const TensorDesc &x = check.input(Input::kX), &y = check.output();
  check.IsData(x);
  check.IsData(y);
  OperandCheck::SameShape(x, y);
  OperandCheck::SameLayout(x, y);
  OperandCheck::Axis(1, x);
  check.input(Input::kMean);
  check.input(Input::kVariance);
  for (const int input : {Input::kMean, Input::kVariance, Input::kGamma, Input::kBeta})
    check.IsParameter(input, x.shape[1]);
  check.IsParameter(Input::kFactor, 1);
}

static void CheckWindow(int64_t size, const OperandCheck& check) {
  check.AtMost(1);
  check.AllLikeOutput();
  Require(size >= 1 && size % 2 == 1 && size <= kMostPlaces, "a window of ", size,
          ", which must be odd");
}

static void CheckOperands(const Lrn& op, const OperandCheck& check) {
  CheckWindow(op.size, check);
  OperandCheck::Axis(1, check.output());
}

static void CheckOperands(const LrnWithin& op, const OperandCheck& check) {
  CheckWindow(op.size, check);
  Require(check.output().shape.num_axes() == 4, "a normalisation within the channels of ",
          check.output().shape, ", which has not 4 axes");
}

CAFFE_REGISTER_OP_FORM(BatchNormInference);
CAFFE_REGISTER_OP_FORM(Lrn);
CAFFE_REGISTER_OP_FORM(LrnWithin);

}  // namespace caffe::ops
