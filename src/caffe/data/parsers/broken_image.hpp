// BrokenImage: see DatumParser.
#pragma once

#include "caffe/error.hpp"

namespace caffe::data {

class BrokenImage : public IoError {
 public:
  using IoError::IoError;
};

}  // namespace caffe::data
