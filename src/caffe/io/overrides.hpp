// Changes single fields of a definition by a path, as on a command line:
//
//   base_lr=0.1
//   stepvalue=1000,2000                                  a complete list
//   layer[conv1].convolution_param.num_output=32         an element by its name
//   layer[3].bottom[0]=data                              or by its index, from 0
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "caffe/export.hpp"

namespace caffe {

// Executes `assignment` ("path=value"); max_iter and max_epoch replace each other. Returns "path:
// old value -> new value" for a log. Throws InvalidArgument for a path that does not exist (with
// the nearest name) and for a value of another type, and then leaves `message` unchanged.
CAFFE_EXPORT std::string ApplyOverride(const std::string& assignment,
                                       google::protobuf::Message* message);

}  // namespace caffe
