// The power by which local response normalization divides.
#pragma once

#include <cmath>

#include "caffe/host_device.hpp"

namespace caffe::cpu {

// scale^-beta. The 0.75 of AlexNet, GoogLeNet and CIFAR-10 needs two square roots and no pow().
template <bool kThreeQuarters>
inline CAFFE_FORCE_INLINE float InversePower(float scale, float beta) {
  if constexpr (kThreeQuarters) {
    const float root = std::sqrt(scale);
    return 1.0f / (root * std::sqrt(root));
  }
  return std::pow(scale, -beta);
}

}  // namespace caffe::cpu
