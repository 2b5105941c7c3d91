// What a net's state leaves out of a definition.
#pragma once

#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument where a layer of `filtered` reads what only a layer makes that
// Net::FilterNet left out of `definition`.
void CheckNoBottomWasLeftOut(const NetParameter& definition, const NetParameter& filtered);

}  // namespace caffe
