// Texts of cuDNN's errors.
#pragma once

#include <cudnn.h>

#include <string>
#include <string_view>

namespace caffe::cuda {

// Names the loaded files if cuDNN's parts do not belong together.
std::string CudnnErrorText(cudnnStatus_t status, const char* call);

// Takes an error text, which usually contains the status's name. Returns true if cuDNN's parts are
// missing or of different versions. MixedPartsAdvice() is the text to append then.
bool IsOfMixedParts(std::string_view error);
std::string MixedPartsAdvice();

}  // namespace caffe::cuda
