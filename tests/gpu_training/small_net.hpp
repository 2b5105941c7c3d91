// A net with a bit of everything that training changes, small enough for an emulated GPU.
#pragma once

#include <string>

#include "caffe/io/text_format.hpp"
#include "caffe/proto/caffe.pb.h"

namespace caffe::testing {

// Its products keep all bits of floats, and each run is bit-identical, so that GPUs can be compared
// with the CPU and with themselves.
inline constexpr const char* kSmallNet = R"pb(
  name: "small"
  strict_fp32: true
  deterministic: true
  layer {
    name: "data"
    type: "DummyData"
    top: "data"
    top: "label"
    dummy_data_param {
      shape { dim: 6 dim: 3 dim: 8 dim: 8 }
      shape { dim: 6 }
      data_filler { type: "gaussian" }
      data_filler { type: "constant" value: 2 }
    }
  }
  layer {
    name: "conv"
    type: "Convolution"
    bottom: "data"
    top: "conv"
    convolution_param {
      num_output: 5
      kernel_size: 3
      bias_term: false  # its gradient would be rounding errors, which some rules blow up
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "bn" type: "BatchNorm" bottom: "conv" top: "bn" }
  layer {
    name: "scale"
    type: "Scale"
    bottom: "bn"
    top: "bn"
    scale_param { bias_term: true }
  }
  layer { name: "relu" type: "ReLU" bottom: "bn" top: "bn" }
  layer {
    name: "pool"
    type: "Pooling"
    bottom: "bn"
    top: "pool"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 }
  }
  layer { name: "drop" type: "Dropout" bottom: "pool" top: "drop" }
  layer {
    name: "ip"
    type: "InnerProduct"
    bottom: "drop"
    top: "ip"
    inner_product_param {
      num_output: 4
      weight_filler { type: "xavier" }
    }
  }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)pb";

inline SolverParameter SmallSolver(const std::string& options, const char* net = kSmallNet) {
  SolverParameter param;
  ParseTextProto("weight_decay: 0.01 random_seed: 3 max_iter: 7 snapshot_after_train: false " +
                     options + " net_param { " + net + " }",
                 "solver", &param);
  if (!param.has_lr_policy()) param.set_lr_policy("fixed");
  return param;
}

}  // namespace caffe::testing
