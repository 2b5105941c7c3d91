// Converts the schema's element types to DType.
#pragma once

#include <string_view>

#include "caffe/dtype.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe {

// Throws InvalidArgument naming `what` for INT, UINT and BOOL, which no blob has.
inline DType DTypeFromProto(Type type, std::string_view what) {
  switch (type) {
    case DOUBLE:
      return DType::kDouble;
    case FLOAT:
      return DType::kFloat;
    case FLOAT16:
      return DType::kFloat16;
    case BFLOAT16:
      return DType::kBFloat16;
    default:
      throw InvalidArgument(
          StrCat(what, " is ", Type_Name(type),
                 ", which is not a floating-point type; use DOUBLE, FLOAT, FLOAT16 "
                 "or BFLOAT16"));
  }
}

}  // namespace caffe
