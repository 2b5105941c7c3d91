// Normalization of rows: MVN, Normalize, LayerNorm and RMSNorm.
#pragma once

#include <string>

#include "caffe/ops/op.hpp"

namespace caffe::ops {

// A row is everything from `axis` on: axis 1 for items, 2 for planes.
//
// (x) -> (y[, deviation]):  y = x - mean of the row, divided with `divides` by deviation =
// sqrt(variance) + eps, or with `eps_in_root` sqrt(variance + eps) (one per row).
struct Mvn {
  static constexpr std::string_view kName = "Mvn";
  int axis = 2;
  bool divides = true;
  double eps = 1e-9;
  bool eps_in_root = false;
  std::string Attributes() const { return StrCat("axis ", axis, divides ? "" : ", mean only"); }
};

// (y, deviation, dy) -> (dx):  dx = (dy - mean(dy) - y * mean(dy * y)) / deviation; without
// `divides` dx = dy - mean(dy).
struct MvnGrad {
  static constexpr std::string_view kName = "MvnGrad";
  int axis = 2;
  bool divides = true;
};

// (x) -> (y, norm):  y = x / norm, norm = sqrt(sum of x^2 + eps): over an item (one norm each), or
// over the channels of each position (N x positions norms). x is N,C,...
struct L2Normalize {
  static constexpr std::string_view kName = "L2Normalize";
  static constexpr OperandSet kItemInputs = {0};
  bool across_spatial = true;
  double eps = 1e-10;
  LayoutRule layout_rule() const { return kFollowFirstInput; }
  std::string Attributes() const { return across_spatial ? "per item" : "per position"; }
};

// (y, norm, dy) -> (dx):  dx = (dy - y * sum(dy * y)) / norm.
struct L2NormalizeGrad {
  static constexpr std::string_view kName = "L2NormalizeGrad";
  bool across_spatial = true;
  LayoutRule layout_rule() const { return {.inputs = {0, 2}, .outputs = {0}}; }
};

// (x[, gamma]) -> (y[, rms]):  y = x / rms * gamma, rms = sqrt(mean of the row's x^2 + eps) (one
// per row). gamma has as many elements as a row; without it y = x / rms.
struct RmsNorm {
  static constexpr std::string_view kName = "RmsNorm";
  enum Input { kX, kGamma };
  int axis = 1;
  double eps = 1e-5;
  std::string Attributes() const { return StrCat("axis ", axis); }
};

// (x, rms, dy[, gamma]) -> (dx):  dx = (g - x * mean(g * x) / rms^2) / rms, g = dy * gamma.
struct RmsNormGrad {
  static constexpr std::string_view kName = "RmsNormGrad";
  enum Input { kX, kRms, kDy, kGamma };
  int axis = 1;
};

}  // namespace caffe::ops
