// The Cortado objects that Net<Dtype> and Solver<Dtype> wrap.
#pragma once

#include <memory>
#include <vector>

#include "compat/net_blob.hpp"
#include "caffe/net.hpp"
#include "caffe/solver.hpp"

namespace caffe::bvlc {

class NetAccess {
 public:
  explicit NetAccess(std::shared_ptr<::caffe::Net> shown) : net(std::move(shown)) {}

  const std::shared_ptr<::caffe::Net> net;
  std::vector<std::shared_ptr<NetBlob>> inputs;
};

class SolverAccess {
 public:
  explicit SolverAccess(std::unique_ptr<::caffe::Solver> shown) : solver(std::move(shown)) {}

  const std::unique_ptr<::caffe::Solver> solver;
};

// Nets of double compute in double.
template <typename Dtype>
NetOptions OptionsOf() {
  NetOptions options;
  if constexpr (kDTypeOf<Dtype> == DType::kDouble) options.precision = FP64;
  return options;
}

// Marks layers that were written for Caffe as double in their definitions.
void MakeDouble(NetParameter* param);

}  // namespace caffe::bvlc
