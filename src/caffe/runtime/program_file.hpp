// ProgramFile: a compiled net with its weights in a file, for the runtime library.
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

// Steps over numbered tensors. The file names ops, not kernels, and keeps weights in their plain
// order: each machine that loads it chooses its best kernels and packs the weights for them.
// Weights of products in 8 bits are kept as 8-bit numbers.
struct ProgramFile {
  struct Tensor {
    std::string name;
    TensorDesc desc;
    // Byte offset among the activations; -1 for a constant.
    int64_t offset = -1;
    std::shared_ptr<const void> constant;  // its bytes, aligned to 64; else null
    // Set for constants of floats that 8-bit steps read: they are kept as those steps' numbers.
    std::optional<WeightRows> rows = {};
  };
  struct Step {
    std::string where;  // "layer 'conv1' (Convolution)"
    Op op;
    Signature signature;
    std::vector<int> inputs, outputs;  // indexes of tensors; -1: absent
  };

  std::string net;      // its name
  std::string made_by;  // "Cortado 1.2.3"
  int64_t activation_bytes = 0;
  std::vector<Tensor> tensors;
  std::vector<int> inputs, outputs;  // indexes of tensors, in the net's order
  std::vector<Step> steps;
};

// Returns true if a file can hold the op.
CAFFE_EXPORT bool CanHold(const Op& op);
// Throws Unsupported, naming the step, for an op that no file can hold.
CAFFE_EXPORT std::string WriteProgram(const ProgramFile& program);
// Adds magic, version and checksum to a body, which is what WriteProgram() writes after them.
CAFFE_EXPORT std::string SealProgram(std::string_view body);
CAFFE_EXPORT std::string SealProgram(std::string_view body, uint32_t version);
// The bytes may be untrusted: a program that is returned stays inside its own memory when it runs.
// Throws InvalidArgument that says what is wrong with the bytes.
CAFFE_EXPORT ProgramFile ReadProgram(std::span<const char> bytes);

}  // namespace caffe::runtime
