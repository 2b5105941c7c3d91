// Overrides of a solver definition and of the nets that it names.
//
//   base_lr=0.1                                          the solver's own field
//   layer[conv1].convolution_param.num_output=32         a field of its net
//   train_net_param.layer[conv1]...                      a field of one of several nets
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Applies `assignment` (see ApplyOverride). A path that begins with "layer[" or "net_param." refers
// to the net, which is read from the file that `net` names and stored in `net_param`; `*net_file`
// is set to that file's name. With train_net and test_net instead, it applies to each net that has
// the path. Returns a line for each changed field: "path: old value -> new value". Throws
// InvalidArgument for a wrong path or value, and IoError for an unreadable net.
CAFFE_EXPORT std::vector<std::string> OverrideSolver(const std::string& assignment,
                                                     SolverParameter* param, std::string* net_file);

}  // namespace caffe
