// Makes a net that shows a fault small.
#pragma once

#include <functional>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// Leaves out layers, options and type fields as long as `fails` holds for what is left.
NetParameter ReduceNet(NetParameter net, const std::function<bool(const NetParameter&)>& fails);

}  // namespace caffe::fuzz
