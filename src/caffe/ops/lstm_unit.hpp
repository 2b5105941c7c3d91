// The pointwise part of a long short-term memory step.
#pragma once

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// (c_prev, gates, cont) -> (c, h):  gates (N,4D) are i, f, o, g side by side; cont has one number
// per item, 0 at the beginning of a sequence:
//   c = cont * sigmoid(f) * c_prev + sigmoid(i) * tanh(g);  h = sigmoid(o) * tanh(c)
// (Hochreiter and Schmidhuber 1997, with Gers's forget gate.) c_prev, c and h have N D elements.
struct LstmUnit {
  static constexpr std::string_view kName = "LstmUnit";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
  static constexpr OperandSet kExactInputs = {2};
};

// (c_prev, gates, cont, c, dc, dh) -> (dc_prev, dgates); dc or dh may be absent (zero).
struct LstmUnitGrad {
  static constexpr std::string_view kName = "LstmUnitGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kFloat;
};

}  // namespace caffe::ops
