// SolverParameter.regularization_type.
#pragma once

#include "caffe/error.hpp"
#include "caffe/ops/update_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// L2 adds decay * w to the gradient, L1 adds decay * sign(w).
inline ops::Regularization ParseRegularization(const SolverParameter& param) {
  const std::string& type = param.regularization_type();
  if (type == "L2") return ops::Regularization::kL2;
  if (type == "L1") return ops::Regularization::kL1;
  throw InvalidArgument("solver: unknown regularization_type '" + type + "'; use L2 or L1");
}

}  // namespace caffe
