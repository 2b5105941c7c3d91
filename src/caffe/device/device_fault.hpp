// DeviceFault: an error of work that a device was given before.
#pragma once

#include "caffe/error.hpp"

namespace caffe {

// Whoever notices it is not to blame, so nobody puts the place where it was noticed in front. The
// device is lost to this process.
class CAFFE_EXPORT DeviceFault : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace caffe
