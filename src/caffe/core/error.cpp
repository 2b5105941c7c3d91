#include "caffe/error.hpp"

namespace caffe {

void ThrowInternalError(const char* file, int line, const std::string& what) {
  throw InternalError(StrCat("internal error at ", std::string_view(file), ":", line, ": ", what,
                             "; this is a defect of Cortado, please report it with the prototxt"));
}

}  // namespace caffe
