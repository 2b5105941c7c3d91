// Mixes the items of a batch (layers/mixup_layer.cpp): mixup (Zhang et al. 2018, arXiv 1710.09412)
// and CutMix (Yun et al. 2019, arXiv 1905.04899).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "caffe/core/philox.hpp"
#include "caffe/host_device.hpp"
#include "caffe/ops/op.hpp"

namespace caffe::ops {

// How a batch is mixed. Item i is mixed with item Partner(i), and Partner(i) with item i.
struct Mix {
  // Elements of a Mix that is stored in a tensor.
  enum Number { kShare, kOffset, kIsCut, kTop, kLeft, kBottom, kRight, kNumbers };

  double share = 1;    // weight of an item's own label, and in mixup of its own image
  int64_t offset = 0;  // an item's index plus its partner's, modulo the number of items
  // CutMix copies this rectangle from the partner; bottom and right are exclusive.
  bool is_cut = false;
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  CAFFE_HOST_DEVICE inline int64_t Partner(int64_t item, int64_t items) const {
    return item <= offset ? offset - item : offset - item + items;
  }
  CAFFE_HOST_DEVICE inline bool IsPartners(int64_t row, int64_t column) const {
    return top <= row && row < bottom && left <= column && column < right;
  }

  // `get(i)` returns element i of the tensor.
  template <typename Get>
  CAFFE_HOST_DEVICE static inline Mix Read(const Get& get) {
    Mix mix;
    mix.share = get(kShare);
    mix.offset = static_cast<int64_t>(get(kOffset));
    mix.is_cut = get(kIsCut) != 0;
    mix.top = static_cast<int64_t>(get(kTop));
    mix.left = static_cast<int64_t>(get(kLeft));
    mix.bottom = static_cast<int64_t>(get(kBottom));
    mix.right = static_cast<int64_t>(get(kRight));
    return mix;
  }
  // `set(i, value)` sets element i of the tensor.
  template <typename Set>
  CAFFE_HOST_DEVICE inline void Write(const Set& set) const {
    set(kShare, share);
    set(kOffset, static_cast<double>(offset));
    set(kIsCut, is_cut ? 1.0 : 0.0);
    set(kTop, static_cast<double>(top));
    set(kLeft, static_cast<double>(left));
    set(kBottom, static_cast<double>(bottom));
    set(kRight, static_cast<double>(right));
  }
};

// () -> (mix):  draws a Mix for the pass from `stream`; one for all items, as in the papers' code.
struct DrawMix {
  static constexpr std::string_view kName = "DrawMix";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  uint64_t stream = 0;
  float prob = 1;                 // probability of mixing
  float alpha = 0.2f;             // mixup draws the share from Beta(alpha, alpha)
  float cutmix_prob = 0;          // probability of CutMix instead of mixup
  float cutmix_alpha = 1;         // CutMix draws the share outside the rectangle from Beta
  int64_t items = 0;              // at least 2
  int64_t height = 0, width = 0;  // of the images; unused by mixup
  std::string Attributes() const {
    return StrCat("alpha ", alpha,
                  cutmix_prob > 0 ? StrCat(", CutMix ", cutmix_prob, " alpha ", cutmix_alpha) : "");
  }

  CAFFE_HOST_DEVICE inline Mix Draw(const RandomStream& random, uint64_t pass) const {
    const auto first = random.Block(0, pass), second = random.Block(1, pass);
    Mix mix;
    mix.offset = static_cast<int64_t>(ToRange(first[2], static_cast<uint32_t>(items)));
    // With an even number of items, an odd sum makes no item its own partner; with an odd number of
    // items one always is.
    if (items % 2 == 0) mix.offset |= 1;
    if (ToUniform(first[0]) >= prob) return mix;
    mix.is_cut = ToUniform(first[1]) < cutmix_prob;
    mix.share = Beta(mix.is_cut ? cutmix_alpha : alpha, random, pass);
    if (mix.is_cut) Cut(second[0], second[1], &mix);
    return mix;
  }

 private:
  // Cuts a rectangle with the image's aspect ratio around a random pixel, clipped to the image. The
  // share becomes the share of the area outside it.
  CAFFE_HOST_DEVICE inline void Cut(uint32_t row_bits, uint32_t column_bits, Mix* mix) const {
    const double side = std::sqrt(1 - mix->share);
    const auto rows = static_cast<int64_t>(static_cast<double>(height) * side);
    const auto columns = static_cast<int64_t>(static_cast<double>(width) * side);
    const auto row = static_cast<int64_t>(ToRange(row_bits, static_cast<uint32_t>(height)));
    const auto column = static_cast<int64_t>(ToRange(column_bits, static_cast<uint32_t>(width)));
    mix->top = AtLeastZero(row - rows / 2), mix->bottom = AtMost(row + rows / 2, height);
    mix->left = AtLeastZero(column - columns / 2);
    mix->right = AtMost(column + columns / 2, width);
    const auto area = static_cast<double>((mix->bottom - mix->top) * (mix->right - mix->left));
    mix->share = 1 - area / static_cast<double>(height * width);
  }
  CAFFE_HOST_DEVICE static inline int64_t AtLeastZero(int64_t x) { return x > 0 ? x : 0; }
  CAFFE_HOST_DEVICE static inline int64_t AtMost(int64_t x, int64_t most) {
    return x < most ? x : most;
  }

  // Uniform in (0, 1], from 32 bits.
  CAFFE_HOST_DEVICE static inline double Positive(uint32_t bits) {
    return (static_cast<double>(bits) + 1) / 4294967296.0;
  }

  // g1 / (g1 + g2) for two numbers from Gamma(alpha). Computed from their logarithms, which do not
  // underflow.
  CAFFE_HOST_DEVICE static inline double Beta(double alpha, const RandomStream& random,
                                              uint64_t pass) {
    constexpr uint64_t kFirstBlock = 2;
    const double first = LogGamma(alpha, random, kFirstBlock, pass);
    const double second = LogGamma(alpha, random, kFirstBlock + kMostTries, pass);
    return 1 / (1 + std::exp(second - first));
  }

  // Marsaglia and Tsang 2000, "A simple method for generating gamma variables". If alpha is below
  // 1, draws from Gamma(alpha + 1) and multiplies by u^(1 / alpha). A try succeeds in more than 95
  // % of cases.
  static constexpr int kMostTries = 32;
  CAFFE_HOST_DEVICE static inline double LogGamma(double alpha, const RandomStream& random,
                                                  uint64_t block, uint64_t pass) {
    constexpr double kTwoPi = 6.283185307179586;
    const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    double log_gamma = std::log(d);
    for (int i = 0; i < kMostTries; ++i) {
      const auto bits = random.Block(block + static_cast<uint64_t>(i), pass);
      if (i == 0 && alpha < 1) log_gamma += std::log(Positive(bits[3])) / alpha;
      const double x =
          std::sqrt(-2 * std::log(Positive(bits[0]))) * std::cos(kTwoPi * Positive(bits[1]));
      const double root = 1 + c * x;
      if (root <= 0) continue;
      const double log_v = 3 * std::log(root), v = root * root * root;
      if (std::log(Positive(bits[2])) >= x * x / 2 + d - d * v + d * log_v) continue;
      return log_gamma + log_v;
    }
    return log_gamma;
  }
};

// (x, mix) -> (y):  y[i] = share * x[i] + (1 - share) * x[Partner(i)]; for CutMix x[i] outside the
// rectangle and x[Partner(i)] inside. Partners are mutual, so the op is its own transpose: backward
// is the same op on dy. x is N x ..., for CutMix N x C x H x W.
struct MixItems {
  static constexpr std::string_view kName = "MixItems";
  static constexpr OperandSet kExactInputs = {1};
  // Convolutions usually follow, and a data layer writes either layout.
  LayoutRule layout_rule() const {
    return {.inputs = {0}, .outputs = {0}, .prefers_channels_last = true};
  }
};

// (label[, mix]) -> (y):  the label of each item as a row with a share for each class: share * (c
// == label[i]) + (1 - share) * (c == label[Partner(i)]). Without a mix the share is 1.
struct MixLabels {
  static constexpr std::string_view kName = "MixLabels";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {0};
  int64_t classes = 0;
  std::string Attributes() const { return StrCat(classes, " classes"); }
};

}  // namespace caffe::ops
