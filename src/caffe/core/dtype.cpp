#include "caffe/dtype.hpp"

namespace caffe {

std::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kDouble:
      return "double";
    case DType::kFloat:
      return "float";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kUInt8:
      return "uint8";
    case DType::kInt8:
      return "int8";
  }
  return "?";
}

}  // namespace caffe
