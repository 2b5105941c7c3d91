// Checks a net from which the net state has excluded layers.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument if a layer of `filtered` reads a blob that is made only by a layer which
// Net::FilterNet excluded from `definition`.
void CheckNoBottomWasLeftOut(const NetParameter& definition, const NetParameter& filtered);

}  // namespace caffe
