// What batch_size means when several workers train one net.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Why batch_size is that of all workers together, as NVCaffe has it: the dialect, or a field that
// only NVCaffe has, in the solver or the net. Empty: it is that of each worker, as BVLC has it.
std::string WhyBatchIsOfAll(const SolverParameter& solver, const NetParameter& net);

// Divides the batch_size of all data layers by `workers`, rounded up. Throws InvalidArgument where
// it is smaller than `workers`.
void DivideBatchSizes(int workers, NetParameter* net);

}  // namespace caffe
