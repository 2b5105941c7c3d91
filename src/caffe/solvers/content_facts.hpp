// What the files hold that a training's definition names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/agreement.hpp"

namespace caffe {

// A fact about the records of data layers, mean files, lists, HDF5 files, plug-ins and modules of
// layers in Python: a line for each. Large files are sampled. Weights are left out: rank 0's count.
Fact FactAboutContent(const SolverParameter& param, const std::vector<const Net*>& nets);

}  // namespace caffe
