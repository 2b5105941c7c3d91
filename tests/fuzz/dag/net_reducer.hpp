// Reduces a net that shows a fault.
#pragma once

#include <functional>

#include "caffe/proto/caffe.pb.h"

namespace caffe::fuzz {

// Removes layers, options and type fields as long as `fails` holds for the remaining net.
NetParameter ReduceNet(NetParameter net, const std::function<bool(const NetParameter&)>& fails);

}  // namespace caffe::fuzz
