// Our element types as CUDA types.
#pragma once

#include <library_types.h>

#include "caffe/dtype.hpp"

namespace caffe::cuda {

inline cudaDataType_t CudaType(DType type) {
  switch (type) {
    case DType::kDouble:
      return CUDA_R_64F;
    case DType::kFloat:
      return CUDA_R_32F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kUInt8:
      return CUDA_R_8U;
    case DType::kInt8:
      return CUDA_R_8I;
  }
  throw InternalError("cuda: unknown element type");
}

// Limit beyond which a faster algorithm is not worth its memory.
inline constexpr size_t kWorkspaceLimit = size_t{256} << 20;
// Alignment of the parts of a workspace, sufficient for every library.
inline constexpr size_t kWorkspaceAlignment = 256;
inline size_t AlignWorkspace(size_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace caffe::cuda
