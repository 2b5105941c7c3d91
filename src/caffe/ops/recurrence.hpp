// Recurrent layers: all steps in time of a batch of sequences as one op.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// Sizes of a recurrence. Its tensors have `items` rows for each step in time, one step after the
// other: row t * items + n belongs to step t of sequence n.
//
// A step reads the state that the step before it left; with `reverse` the last step comes first.
// cont, one number for each row, scales what a step reads: 0 where a sequence starts. With
// `reverse` a step reads the cont of the step that follows in time, because that is where it would
// cross the border, and 1 for the last. Without cont all numbers are 1. The first step to run reads
// the initial state, which is 0 if it is absent.
struct Recurrence {
  int64_t steps = 0, items = 0, width = 0;
  bool reverse = false;
  // LSTM: numbers of h, to which a matrix reduces the `width` numbers of a step; 0: no matrix does.
  int64_t projection = 0;

  int64_t h_width() const { return projection > 0 ? projection : width; }
  std::string Attributes() const {
    return StrCat(steps, " steps of ", items, "x", width,
                  projection > 0 ? StrCat(" projected to ", projection) : "",
                  reverse ? ", from the last" : "");
  }
  // Counts products with `matrices` matrices of width x h_width(), and the projection.
  double ProductFlops(int64_t matrices) const {
    return 2.0 * static_cast<double>(steps * items) * static_cast<double>(width) *
           static_cast<double>(matrices * h_width() + projection);
  }
  bool operator==(const Recurrence&) const = default;
};

// h' is cont times h of the step before, as rows (T N,P) in the type of the data. P is h_width().
//
// (products, weights, cont, h0, c0, projection) -> (h, gates, c, h_last, c_last, units):
//   gates = products + h' weights^T;  (c, units) = LstmUnit(c of the step before, gates, cont)
//   h = units projection^T, or units if there is no projection
// products and gates are (T N,4D), weights (4D,P), projection (P,D), h (T N,P), c and units (T
// N,D), cont (T N), and states (N,P) and (N,D). gates and c are what LstmStepsGrad reads; units are
// for the gradient of projection.
struct LstmSteps : Recurrence {
  static constexpr std::string_view kName = "LstmSteps";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kProducts, kWeights, kCont, kH0, kC0, kProjection };
  enum Output { kH, kGates, kC, kHLast, kCLast, kUnits };
  static constexpr OperandSet kExactInputs = {kCont, kH0, kC0};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(4);
  }
};

// (weights, cont, h0, c0, h, gates, c, dh, dh_last, dc_last, projection)
//   -> (dgates, hidden, dh0, dc0, dprojected)
// dgates is the gradient of products, each number limited to +-clipping_threshold unless this is 0.
// hidden is h', so that the gradient of weights is dgates^T hidden. dprojected is the gradient of h
// including that of later steps, so that the gradient of projection is dprojected^T units.
struct LstmStepsGrad : Recurrence {
  static constexpr std::string_view kName = "LstmStepsGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kWeights, kCont, kH0, kC0, kH, kGates, kC, kDh, kDhLast, kDcLast, kProjection };
  enum Output { kDGates, kHidden, kDh0, kDc0, kDProjected };
  static constexpr OperandSet kExactInputs = {kCont, kH0, kC0, kGates, kC, kDhLast, kDcLast};
  float clipping_threshold = 0;
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(4);
  }
};

// (products, weights_z, weights_r, weights_n, cont, h0) -> (h, z, r, n, h_last):
//   z = sigmoid(products_z + h' weights_z^T),  r = sigmoid(products_r + h' weights_r^T)
//   n = tanh(products_n + (r h') weights_n^T),  h = n + z (h' - n)
// products are (T N,3D): z, r, n side by side; weights are (D,D), everything else (T N,D).
struct GruSteps : Recurrence {
  static constexpr std::string_view kName = "GruSteps";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kProducts, kWeights, kCont = kWeights + 3, kH0 };
  enum Output { kH, kGates, kHLast = kGates + 3 };
  static constexpr OperandSet kExactInputs = {kCont, kH0};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(3);
  }
};

// (weights_z, weights_r, weights_n, cont, h0, h, z, r, n, dh, dh_last)
//   -> (dz, dr, dn, hidden, reset, dh0)
// dz, dr and dn are the gradients of the three parts of products; reset is r h'.
struct GruStepsGrad : Recurrence {
  static constexpr std::string_view kName = "GruStepsGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kWeights, kCont = kWeights + 3, kH0, kH, kGates, kDh = kGates + 3, kDhLast };
  enum Output { kDGates, kHidden = kDGates + 3, kReset, kDh0 };
  static constexpr OperandSet kExactInputs = {kCont, kH0, kGates, kGates + 1, kGates + 2, kDhLast};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(3);
  }
};

// GRU whose reset gate comes after the product, as in cuDNN and PyTorch.
// (products, weights_z, weights_r, weights_n, cont, h0, bias) -> (h, z, r, n, fed, h_last):
//   z and r as those of GruSteps,  fed = h' weights_n^T + bias
//   n = tanh(products_n + r fed),  h = n + z (h' - n)
// bias is (D), everything else as for GruSteps.
struct GruResetAfterSteps : Recurrence {
  static constexpr std::string_view kName = "GruResetAfterSteps";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kProducts, kWeights, kCont = kWeights + 3, kH0, kBias };
  enum Output { kH, kGates, kFed = kGates + 3, kHLast };
  static constexpr OperandSet kExactInputs = {kCont, kH0, kBias};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(3);
  }
};

// (weights_z, weights_r, weights_n, cont, h0, h, z, r, n, fed, dh, dh_last)
//   -> (dz, dr, dn, dfed, hidden, dh0)
// dz, dr and dn are the gradients of the three parts of products. dfed is that of fed, so that the
// gradient of weights_n is dfed^T hidden.
struct GruResetAfterStepsGrad : Recurrence {
  static constexpr std::string_view kName = "GruResetAfterStepsGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kWeights, kCont = kWeights + 3, kH0, kH, kGates, kFed = kGates + 3, kDh, kDhLast };
  enum Output { kDGates, kDFed = kDGates + 3, kHidden, kDh0 };
  static constexpr OperandSet kExactInputs = {kCont,      kH0,  kGates, kGates + 1,
                                              kGates + 2, kFed, kDhLast};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(3);
  }
};

// (products, weights, cont, h0) -> (h, h_last):  h = tanh(products + h' weights^T)
struct RnnSteps : Recurrence {
  static constexpr std::string_view kName = "RnnSteps";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kProducts, kWeights, kCont, kH0 };
  enum Output { kH, kHLast };
  static constexpr OperandSet kExactInputs = {kCont, kH0};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(1);
  }
};

// (weights, cont, h0, h, dh, dh_last) -> (dproducts, hidden, dh0)
struct RnnStepsGrad : Recurrence {
  static constexpr std::string_view kName = "RnnStepsGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kMath;
  enum Input { kWeights, kCont, kH0, kH, kDh, kDhLast };
  enum Output { kDProducts, kHidden, kDh0 };
  static constexpr OperandSet kExactInputs = {kCont, kH0, kDhLast};
  double Flops(std::span<const TensorDesc>, std::span<const TensorDesc>) const {
    return ProductFlops(1);
  }
};

}  // namespace caffe::ops
