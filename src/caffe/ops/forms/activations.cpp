#include "caffe/ops/activations.hpp"

#include "caffe/ops/arrays.hpp"
#include "caffe/ops/forms/fields.hpp"
#include "caffe/ops/round_to.hpp"

namespace caffe::ops {

CAFFE_FIELDS(Relu, negative_slope)
CAFFE_NO_FIELDS(Sigmoid)
CAFFE_NO_FIELDS(Tanh)
CAFFE_FIELDS(ScaleBy, factor)
CAFFE_NO_FIELDS(Abs)
CAFFE_FIELDS(Elu, alpha, lambda)
CAFFE_NO_FIELDS(Bnll)
CAFFE_FIELDS(Swish, beta)
CAFFE_FIELDS(HardSigmoid, alpha, beta)
CAFFE_NO_FIELDS(HardSwish)
CAFFE_NO_FIELDS(Mish)
CAFFE_NO_FIELDS(Gelu)
CAFFE_FIELDS(Clip, least, most)
CAFFE_FIELDS(Threshold, threshold)
CAFFE_FIELDS(Power, power, scale, shift)
CAFFE_FIELDS(Exp, scale, shift)
CAFFE_FIELDS(Log, factor, scale, shift)
CAFFE_FIELDS(Affine, alpha, beta)
CAFFE_FIELDS(RoundTo, type)

static void CheckOperands(const UnaryPointwise&, const OperandCheck& check) {
  check.AtMost(1);
  check.AllLikeOutput();
}

CAFFE_REGISTER_OP_FORM(Relu);
CAFFE_REGISTER_OP_FORM(Sigmoid);
CAFFE_REGISTER_OP_FORM(Tanh);
CAFFE_REGISTER_OP_FORM(ScaleBy);
CAFFE_REGISTER_OP_FORM(Abs);
CAFFE_REGISTER_OP_FORM(Elu);
CAFFE_REGISTER_OP_FORM(Bnll);
CAFFE_REGISTER_OP_FORM(Swish);
CAFFE_REGISTER_OP_FORM(HardSigmoid);
CAFFE_REGISTER_OP_FORM(HardSwish);
CAFFE_REGISTER_OP_FORM(Mish);
CAFFE_REGISTER_OP_FORM(Gelu);
CAFFE_REGISTER_OP_FORM(Clip);
CAFFE_REGISTER_OP_FORM(Threshold);
CAFFE_REGISTER_OP_FORM(Power);
CAFFE_REGISTER_OP_FORM(Exp);
CAFFE_REGISTER_OP_FORM(Log);
CAFFE_REGISTER_OP_FORM(Affine);
CAFFE_REGISTER_OP_FORM(RoundTo);

}  // namespace caffe::ops
