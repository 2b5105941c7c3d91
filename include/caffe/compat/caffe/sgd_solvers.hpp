// Caffe's solver classes, one for each optimizer.
#pragma once

#include <string>
#include <vector>

#include "solver.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class SGDSolver : public Solver<Dtype> {
 public:
  explicit SGDSolver(const SolverParameter& param) : SGDSolver(param, "SGD") {}
  explicit SGDSolver(const string& param_file) : SGDSolver(param_file, "SGD") {}

  // The optimizer's state: one blob per learnable parameter and kind of state.
  const vector<shared_ptr<Blob<Dtype>>>& history() { return history_; }
  // The learning rate of the current iteration.
  Dtype GetLearningRate();

 protected:
  SGDSolver(const SolverParameter& param, const string& type);
  SGDSolver(const string& param_file, const string& type);

  vector<shared_ptr<Blob<Dtype>>> history_;

 private:
  friend class SolverRegistry<Dtype>;
  void ShowHistory();

  DISABLE_COPY_AND_ASSIGN(SGDSolver);
};

#define CAFFE_SOLVER_CLASS(Name)                                                             \
  template <typename Dtype>                                                                  \
  class Name##Solver : public SGDSolver<Dtype> {                                             \
   public:                                                                                   \
    explicit Name##Solver(const SolverParameter& param) : SGDSolver<Dtype>(param, #Name) {}  \
    explicit Name##Solver(const string& param_file) : SGDSolver<Dtype>(param_file, #Name) {} \
  }

CAFFE_SOLVER_CLASS(Nesterov);
CAFFE_SOLVER_CLASS(AdaGrad);
CAFFE_SOLVER_CLASS(RMSProp);
CAFFE_SOLVER_CLASS(AdaDelta);
CAFFE_SOLVER_CLASS(Adam);
#undef CAFFE_SOLVER_CLASS

extern template class SGDSolver<float>;
extern template class SGDSolver<double>;

CAFFE_BVLC_END
