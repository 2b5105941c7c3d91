// Describes the contents of the files that a training's definition names.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "caffe/net.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solvers/agreement.hpp"

namespace caffe {

// A fact with one line each for the records of data layers, mean files, lists, HDF5 files, plug-ins
// and Python layer modules. Large files are sampled. Weights are excluded, because those of rank 0
// are used.
Fact FactAboutContent(const SolverParameter& param, const std::vector<const Net*>& nets);

}  // namespace caffe
