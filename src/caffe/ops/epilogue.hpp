// Epilogue: pointwise work that an op does on its result before storing it, which saves a pass over
// memory for each entry.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "caffe/error.hpp"
#include "caffe/host_device.hpp"
#include "caffe/ops/operand_set.hpp"

namespace caffe::ops {

// One entry of an epilogue; `value` is the element so far.
struct Pointwise {
  enum class Kind : uint8_t {
    kRelu,      // value > 0 ? value : a * value; NaN stays NaN; -inf becomes NaN if a is 0
    kClip,      // value limited to [a, b]; NaN stays NaN
    kSwish,     // value * sigmoid(a * value)
    kAdd,       // value + the same element of input `operand`
    kScale,     // value * element c of input `operand`; c is the channel (axis 1)
    kShift,     // value + element c of input `operand`
    kReluGrad,  // the same element of input `operand` > 0 ? value : a * value
  };
  Kind kind = Kind::kRelu;
  float a = 0, b = 0;
  int operand = -1;  // index of the node's input; -1 if the entry reads none

  bool operator==(const Pointwise&) const = default;
  // True if it reads a tensor of the result's shape.
  bool reads_data() const { return kind == Kind::kAdd || kind == Kind::kReluGrad; }
};

// Applies kRelu, kClip and kSwish.
template <typename A>
CAFFE_HOST_DEVICE inline A ApplyPointwise(const Pointwise& entry, A value) {
  switch (entry.kind) {
    case Pointwise::Kind::kRelu:
      return value > A(0) ? value : A(entry.a) * value + A(0);  // never -0
    case Pointwise::Kind::kClip:
      return value < A(entry.a) ? A(entry.a) : (value > A(entry.b) ? A(entry.b) : value);
    case Pointwise::Kind::kSwish:
      return value * (A(0.5) * std::tanh(A(0.5) * A(entry.a) * value) + A(0.5));
    default:
      return value;
  }
}

// Entries in the order in which they are applied.
using Epilogue = std::vector<Pointwise>;

// ", relu", ", add, relu leaky": a suffix for Attributes().
inline std::string EpilogueText(const Epilogue& epilogue) {
  std::string text;
  for (const Pointwise& entry : epilogue) {
    switch (entry.kind) {
      case Pointwise::Kind::kRelu:
        text += entry.a == 0 ? ", relu" : ", relu leaky";
        break;
      case Pointwise::Kind::kClip:
        text += StrCat(", clip ", entry.a, " to ", entry.b);
        break;
      case Pointwise::Kind::kSwish:
        text += ", swish";
        break;
      case Pointwise::Kind::kAdd:
        text += ", add";
        break;
      case Pointwise::Kind::kScale:
        text += ", scale";
        break;
      case Pointwise::Kind::kShift:
        text += ", shift";
        break;
      case Pointwise::Kind::kReluGrad:
        text += entry.a == 0 ? ", relu grad" : ", relu grad leaky";
        break;
    }
  }
  return text;
}

// Adds to `inputs` those that the epilogue reads element by element, which have the result's
// layout.
inline OperandSet WithEpilogueData(OperandSet inputs, const Epilogue& epilogue) {
  for (const Pointwise& entry : epilogue) {
    if (entry.reads_data()) inputs.insert(static_cast<size_t>(entry.operand));
  }
  return inputs;
}

// True if the epilogue is at most a sum and a non-leaky ReLU, in this order.
inline bool IsAddRelu(const Epilogue& epilogue) {
  size_t i = 0;
  if (i < epilogue.size() && epilogue[i].kind == Pointwise::Kind::kAdd) ++i;
  if (i < epilogue.size() && epilogue[i].kind == Pointwise::Kind::kRelu && epilogue[i].a == 0) ++i;
  return i == epilogue.size();
}

// True if the epilogue is only sums, then at most the gradient of a ReLU, as it usually follows a
// gradient in a net.
inline bool IsSumReluGrad(const Epilogue& epilogue) {
  size_t i = 0;
  while (i < epilogue.size() && epilogue[i].kind == Pointwise::Kind::kAdd) ++i;
  if (i < epilogue.size() && epilogue[i].kind == Pointwise::Kind::kReluGrad) ++i;
  return i == epilogue.size();
}

// The operand that an IsAddRelu() epilogue adds; -1 if none.
inline int AddedOperand(const Epilogue& epilogue) {
  const bool adds = !epilogue.empty() && epilogue[0].kind == Pointwise::Kind::kAdd;
  return adds ? epilogue[0].operand : -1;
}
inline bool EndsInRelu(const Epilogue& epilogue) {
  return !epilogue.empty() && epilogue.back().kind == Pointwise::Kind::kRelu;
}

}  // namespace caffe::ops
