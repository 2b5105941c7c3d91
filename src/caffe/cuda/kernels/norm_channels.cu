#include <cmath>

#include "caffe/cuda/norm_channels.hpp"
#include "caffe/cuda/numbers.cuh"

namespace caffe::cuda {
namespace {

struct InverseDeviation {
  Numbers variance;
  double eps;
  float* inverse;

  __device__ void operator()(int64_t c) const {
    inverse[c] = static_cast<float>(1 / std::sqrt(variance.Get<double>(c) + eps));
  }
};

}  // namespace

void InverseDeviations(const KernelContext& ctx, const TensorView& variance, double eps,
                       float* inverse) {
  ForEach(ctx, variance.count(), InverseDeviation{{variance.data, variance.dtype}, eps, inverse});
}

}  // namespace caffe::cuda
