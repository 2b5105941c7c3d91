// Binary files of Caffe's forks. A fork gave its layers' options numbers that BVLC, NVCaffe or
// another fork gave to other fields, and users who copied a layer chose a number of their own.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Moves the options of forks' layers to their fields in our schema. Which they are follows from the
// layer's type; net->dialect() decides where several fields of a layer could be meant. Says in the
// log whose file it is. Options that cannot be read are dropped with a warning: weights need none.
// For nets read from binary files, before AdoptBvlcFields().
CAFFE_EXPORT void AdoptForkFields(const std::string& source_name, NetParameter* net);

}  // namespace caffe
