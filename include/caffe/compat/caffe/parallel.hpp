// Training on several GPUs.
#pragma once

#include "solver.hpp"

CAFFE_BVLC_BEGIN
template <typename Dtype>
class NCCL {
 public:
  explicit NCCL(shared_ptr<Solver<Dtype>>) { Advise(); }
  NCCL(shared_ptr<Solver<Dtype>>, const string&) { Advise(); }

 private:
  static void Advise() {
    static_assert(NotHere<Dtype>::value,
                  "several workers are not an object of Caffe's C++ API here: run `caffe train "
                  "--gpu 0,1`, or use caffe::SolverGroup of Cortado's own headers");
  }
};

CAFFE_BVLC_END
