// How many threads decode and transform records.
#pragma once

#include "caffe/data/first_record.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::data {

// As the prototxt says; else so many as the work of `ranks` that may share this machine's
// processors needs at most. Threads without work only wait.
int ParserThreads(const DataParameter& reading, const FirstRecord& first, int ranks,
                  int processors);

}  // namespace caffe::data
