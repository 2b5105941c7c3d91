// Binary files of Caffe's forks. A fork may use a field number for its layers' options that BVLC,
// NVCaffe or another fork uses for another field, and users who copied a layer chose numbers of
// their own.
#pragma once

#include <string>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Moves the options of forks' layers to their fields in our schema. The layer's type determines the
// field; net->dialect() decides if several fields of a layer are possible. Logs the origin of the
// file. Options that cannot be read are dropped with a warning, because weights do not need them.
// For nets read from binary files, before AdoptBvlcFields().
CAFFE_EXPORT void AdoptForkFields(const std::string& source_name, NetParameter* net);

}  // namespace caffe
