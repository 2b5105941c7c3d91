// What errors of cuDNN say.
#pragma once

#include <cudnn.h>

#include <string>

namespace caffe::cuda {

// Where cuDNN's parts do not belong together, it names the files that are loaded.
std::string CudnnErrorText(cudnnStatus_t status, const char* call);

}  // namespace caffe::cuda
