// SolverParameter.regularization_type.
#pragma once

#include "caffe/error.hpp"
#include "caffe/ops/update_rules.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// L2 adds decay * w to the gradient, L1 adds decay * sign(w). WD leaves the gradient unchanged; the
// optimizer subtracts rate * decay * w from the weights in addition to the update.
inline ops::Regularization ParseRegularization(const SolverParameter& param) {
  const std::string& type = param.regularization_type();
  if (type == "L2") return ops::Regularization::kL2;
  if (type == "L1") return ops::Regularization::kL1;
  if (type == "WD") {
    const bool decays = param.type() == "SGD" || param.type() == "AdamW" || param.type() == "LAMB";
    Require(decays, "solver: regularization_type is WD, but the type is ", param.type(),
            ", which cannot decay weights apart from the gradient; use L2, or type SGD or AdamW");
    return ops::Regularization::kNone;
  }
  throw InvalidArgument("solver: unknown regularization_type '" + type + "'; use L2, L1 or WD");
}

}  // namespace caffe
