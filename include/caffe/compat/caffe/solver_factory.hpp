// SolverRegistry<Dtype>: creates a solver from SolverParameter.type.
#pragma once

#include <string>
#include <vector>

#include "caffe/proto/caffe.pb.h"
#include "common.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class Solver;

template <typename Dtype>
class SolverRegistry {
 public:
  // The caller owns the result. Throws caffe::Error naming the nearest type for an unknown type.
  static Solver<Dtype>* CreateSolver(const SolverParameter& param);
  // Sorted.
  static vector<string> SolverTypeList();

 private:
  SolverRegistry();
};

extern template class SolverRegistry<float>;
extern template class SolverRegistry<double>;

// Always false, but evaluated only when the template is instantiated.
template <typename T>
struct NotHere {
  static const bool value = false;
};

CAFFE_BVLC_END

#define CAFFE_NO_OWN_SOLVERS                                                                     \
  "an optimizer cannot be added through Caffe's C++ API: one step of all parameters is a "       \
  "kernel here. Use one of SolverTypeList(), change gradients in Callback::on_gradients_ready, " \
  "or add an update rule to src/caffe/solvers (CONTRIBUTING.md)"

#define REGISTER_SOLVER_CREATOR(type, creator) \
  static_assert(::caffe::NotHere<struct Solver_##type>::value, CAFFE_NO_OWN_SOLVERS)
#define REGISTER_SOLVER_CLASS(type) REGISTER_SOLVER_CREATOR(type, )
