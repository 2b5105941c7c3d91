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

// For translation units compiled by nvcc, which has no _Float16.
uint16_t Float16Bits(float value);
float Float16Value(uint16_t bits);

uint16_t Float16Bits(float value) {
  return float16(value).bits;
}
float Float16Value(uint16_t bits) {
  return static_cast<float>(std::bit_cast<float16>(bits));
}

}  // namespace caffe
