// The meaning of batch_size when several workers train one net.
#pragma once

#include <string>

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Returns why batch_size is the total of all workers, as in NVCaffe: the dialect, or a field of the
// solver or the net that only NVCaffe has. Empty if it is that of each worker, as in BVLC.
std::string WhyBatchIsOfAll(const SolverParameter& solver, const NetParameter& net);

// Divides the batch_size of all data layers by `workers`, rounded up. Throws InvalidArgument if a
// batch_size is smaller than `workers`.
void DivideBatchSizes(int workers, NetParameter* net);

}  // namespace caffe
