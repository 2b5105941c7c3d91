// RunLength: the number of iterations of a run, and its test iterations.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/epoch_batches.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for a max_epoch that is not positive or is combined with max_iter.
void CheckLength(const SolverParameter& param);

// True if a test follows each epoch and the end of the run: with max_epoch or a metric, unless
// test_interval is set.
bool TestsEpochs(const SolverParameter& param);

class RunLength {
 public:
  // For a run in which each of `ranks` trains a net like `train_net`. Throws InvalidArgument if
  // epochs count and the net does not know its number of records, or if the number of iterations is
  // too large.
  RunLength(const SolverParameter& param, const Net& train_net, int ranks);

  // "max_epoch 10: 4690 iterations, 469 for each pass over 60000 records"; only with max_epoch.
  std::string Describe() const;
  // The original solver definition.
  const SolverParameter& given() const { return given_; }
  // The same with max_epoch converted to max_iter.
  SolverParameter Resolved() const;

  // True if a test is due after `iteration` iterations, which may be 0: by test_interval or, if
  // TestsEpochs(), after the iteration that completes an epoch and after the last one. An epoch
  // ends within an iteration if its records are not a multiple of those of an iteration.
  bool IsTestDue(int iteration) const;

 private:
  // Complete epochs after `iteration` iterations.
  uint64_t EpochsAfter(int iteration) const;

  const SolverParameter given_;
  uint64_t records_ = 0;                // in an epoch; 0 if epochs do not count
  uint64_t records_per_iteration_ = 0;  // over all ranks and passes
  int iterations_ = 0;
};

}  // namespace caffe
