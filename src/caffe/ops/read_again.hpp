// Counts memory traffic of ops that read operands twice, because their second pass needs the sums
// of the first. The operands are too large to stay in a cache between the passes.
//
//   const ReadAgain<BatchNorm> registrar([](const BatchNorm&, inputs, outputs) { return ...; });
#pragma once

#include <functional>
#include <span>
#include <typeindex>

#include "caffe/export.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Null: the operand is absent.
using OperandDescs = std::span<const TensorDesc* const>;

// Bytes that the op's kernels read in addition to reading each input once; 0 if not registered.
CAFFE_EXPORT double BytesReadAgain(const Op& op, OperandDescs inputs, OperandDescs outputs);

using CountBytes = std::function<double(const Op&, OperandDescs, OperandDescs)>;
CAFFE_EXPORT void RegisterReadAgain(std::type_index op, CountBytes count);

template <typename T>
struct ReadAgain {
  explicit ReadAgain(double (*count)(const T&, OperandDescs, OperandDescs)) {
    RegisterReadAgain(typeid(T), [count](const Op& op, OperandDescs inputs, OperandDescs outputs) {
      return count(*op.As<T>(), inputs, outputs);
    });
  }
};

// Bytes of an operand; 0 if it is absent.
inline double BytesOf(OperandDescs operands, int i) {
  const auto at = static_cast<size_t>(i);
  if (at >= operands.size() || operands[at] == nullptr) return 0;
  return static_cast<double>(operands[at]->bytes());
}

}  // namespace caffe::ops
