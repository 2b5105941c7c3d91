#include "caffe/compat/caffe/internal_thread.hpp"

#include "caffe/compat/caffe/util/math_functions.hpp"

namespace caffe::bvlc {

InternalThread::~InternalThread() {
  StopInternalThread();
}

void InternalThread::StartInternalThread() {
  CHECK(!is_started()) << "The thread has been started already";
  must_stop_ = false;
  const unsigned int seed = caffe_rng_rand();
  const int rank = Caffe::solver_rank(), count = Caffe::solver_count();
  const bool multiprocess = Caffe::multiprocess();
  is_started_ = true;
  thread_ = std::thread([this, seed, rank, count, multiprocess] {
    Caffe::rng_stream() = Caffe::RNG(seed);
    Caffe::set_solver_rank(rank);
    Caffe::set_solver_count(count);
    Caffe::set_multiprocess(multiprocess);
    InternalThreadEntry();
  });
}

void InternalThread::StopInternalThread() {
  if (!is_started_) return;
  must_stop_ = true;
  WakeInternalThread();
  thread_.join();
  is_started_ = false;
}

}  // namespace caffe::bvlc
