// RunLength: how many iterations a run trains for, and after which it tests.
#pragma once

#include <cstdint>
#include <string>

#include "caffe/epoch_batches.hpp"
#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument for a max_epoch that is not positive, or beside max_iter.
void CheckLength(const SolverParameter& param);

class RunLength {
 public:
  // Of a run in which each of `ranks` trains a net as `train_net`. Throws InvalidArgument where
  // max_epoch is set and the net does not know how many records it has, or where its epochs are
  // more iterations than can be counted.
  RunLength(const SolverParameter& param, const Net& train_net, int ranks);

  // "max_epoch 10: 4690 iterations, 469 for each pass over 60000 records"; of a run with max_epoch.
  std::string Describe() const;
  // The solver's definition as it was given.
  const SolverParameter& given() const { return given_; }
  // The same with the iterations of its max_epoch as max_iter.
  SolverParameter Resolved() const;

  // Whether the solver asks for a test when so many iterations are done, which may be 0: by
  // test_interval, or without one after the iteration that ends an epoch of max_epoch. An epoch
  // ends within an iteration where its records do not make whole iterations.
  bool IsTestDue(int iteration) const;

 private:
  // Epochs that are complete after so many iterations.
  uint64_t EpochsAfter(int iteration) const;

  const SolverParameter given_;
  uint64_t records_ = 0;                // of an epoch; 0 without max_epoch
  uint64_t records_per_iteration_ = 0;  // of all ranks and passes
  int iterations_ = 0;
};

}  // namespace caffe
