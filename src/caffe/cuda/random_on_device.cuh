// Seed and pass number of the random streams, read on the device so that a replayed graph uses the
// current ones.
#pragma once

#include "caffe/core/philox.hpp"
#include "caffe/cuda/launch.cuh"

namespace caffe::cuda {

class RandomOnDevice {
 public:
  explicit RandomOnDevice(const KernelContext& ctx)
      : seed_(ctx.random.seed),
        pass_(ctx.random.pass),
        ranks_(ctx.random.ranks),
        on_device_(ctx.random.on_device) {}

  __device__ uint64_t pass() const { return on_device_ == nullptr ? pass_ : on_device_[1]; }
  // True in this rank's first pass; see RandomState.
  __device__ bool is_first_pass() const { return pass() < ranks_; }
  __device__ RandomStream Stream(uint64_t stream) const {
    return {on_device_ == nullptr ? seed_ : on_device_[0], stream};
  }

 private:
  uint64_t seed_, pass_, ranks_;
  const uint64_t* on_device_;
};

}  // namespace caffe::cuda
