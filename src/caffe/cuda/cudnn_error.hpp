// What errors of cuDNN say.
#pragma once

#include <cudnn.h>

#include <string>
#include <string_view>

namespace caffe::cuda {

// Where cuDNN's parts do not belong together, it names the files that are loaded.
std::string CudnnErrorText(cudnnStatus_t status, const char* call);

// The same for errors that come as texts, most of which have the status's name in them: whether
// cuDNN's parts are missing or of different versions, and what comes behind the text then.
bool IsOfMixedParts(std::string_view error);
std::string MixedPartsAdvice();

}  // namespace caffe::cuda
