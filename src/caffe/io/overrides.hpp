// Changes single fields of a definition by a path, as a command line has it:
//
//   base_lr=0.1
//   stepvalue=1000,2000                                  a list as a whole
//   layer[conv1].convolution_param.num_output=32         an element by its name
//   layer[3].bottom[0]=data                              or by its number, from 0
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "caffe/export.hpp"

namespace caffe {

// Sets what `assignment` ("path=value") says; max_iter and max_epoch take each other's place.
// Returns "path: old value -> new value" for a log. Throws InvalidArgument for a path that is not
// there (with the nearest name) and for a value of another type; `message` is as before then.
CAFFE_EXPORT std::string ApplyOverride(const std::string& assignment,
                                       google::protobuf::Message* message);

}  // namespace caffe
