// ProgramFile: a compiled net and its weights as a file, for the runtime library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/ops/kernel.hpp"
#include "caffe/ops/op.hpp"
#include "caffe/runtime/weight_rows.hpp"
#include "caffe/tensor/tensor_view.hpp"

namespace caffe::runtime {

// Steps over numbered tensors. It names ops, not kernels, and keeps weights in their plain order:
// each machine that loads it takes the best kernels that it has, and packs the weights for them.
// Weights of products in 8 bits are kept as 8-bit numbers.
struct ProgramFile {
  struct Tensor {
    std::string name;
    TensorDesc desc;
    // Where it lies among the activations, in bytes; -1: it is a constant.
    int64_t offset = -1;
    std::shared_ptr<const void> constant;  // its bytes, aligned to 64; else null
    // Constants of floats that steps in 8 bits read: kept as what those make of them.
    std::optional<WeightRows> rows = {};
  };
  struct Step {
    std::string where;  // "layer 'conv1' (Convolution)"
    Op op;
    Signature signature;
    std::vector<int> inputs, outputs;  // tensors; -1: left out
  };

  std::string net;      // its name
  std::string made_by;  // "Cortado 1.2.3"
  int64_t activation_bytes = 0;
  std::vector<Tensor> tensors;
  std::vector<int> inputs, outputs;  // tensors, in the net's order
  std::vector<Step> steps;
};

// Whether a file can hold the op.
CAFFE_EXPORT bool CanHold(const Op& op);
// Throws Unsupported, naming the step, for an op that no file can hold.
CAFFE_EXPORT std::string WriteProgram(const ProgramFile& program);
// The file around what WriteProgram() writes behind its magic, version and checksum.
CAFFE_EXPORT std::string SealProgram(std::string_view body);
CAFFE_EXPORT std::string SealProgram(std::string_view body, uint32_t version);
// Nobody needs to vouch for the bytes: whatever they are, a program that is returned stays inside
// its own memory when it runs. Throws InvalidArgument saying what is wrong with them.
CAFFE_EXPORT ProgramFile ReadProgram(std::span<const char> bytes);

}  // namespace caffe::runtime
