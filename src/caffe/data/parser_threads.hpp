// Chooses the number of threads that decode and transform records.
#pragma once

#include "caffe/data/first_record.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// The prototxt's number if set; otherwise the maximum that can be useful if `ranks` ranks share
// this machine's processors. Idle threads only wait.
int ParserThreads(const DataParameter& reading, const FirstRecord& first, int ranks,
                  int processors);

}  // namespace caffe::data
