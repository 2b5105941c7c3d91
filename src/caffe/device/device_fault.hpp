// DeviceFault: an asynchronous error of work that was given to a device earlier.
#pragma once

#include "caffe/error.hpp"

namespace caffe {

// The code that notices it is not to blame, so its place is not added to the message. The device is
// lost to this process.
class CAFFE_EXPORT DeviceFault : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

}  // namespace caffe
