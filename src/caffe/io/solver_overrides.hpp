// Overrides of a solver definition, which may reach into the nets that it names.
//
//   base_lr=0.1                                          the solver's own field
//   layer[conv1].convolution_param.num_output=32         a field of its net
//   train_net_param.layer[conv1]...                      of one of its nets, where it has several
#pragma once

#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Applies `assignment` (see ApplyOverride). A path that begins with "layer[" or "net_param." goes
// to the net, which is read from the file that `net` names and put into `net_param`; `*net_file` is
// then that file's name. With train_net and test_net instead it goes to each net that has the path.
// Returns a line for each field that changed: "path: old value -> new value". Throws
// InvalidArgument for a wrong path or value, and IoError for a net that cannot be read.
CAFFE_EXPORT std::vector<std::string> OverrideSolver(const std::string& assignment,
                                                     SolverParameter* param, std::string* net_file);

}  // namespace caffe
