// Fields of structs that several ops share.
#pragma once

#include "caffe/ops/epilogue.hpp"
#include "caffe/ops/op_form.hpp"

namespace caffe::ops {

CAFFE_FIELDS(Pointwise, kind, a, b, operand)

}  // namespace caffe::ops
