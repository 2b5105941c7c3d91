// SSD's loss of prior boxes (Liu et al. 2016, "SSD: Single Shot MultiBox Detector"), once it is
// chosen what each box has to learn. Boxes are numbered over all items: box = item * priors +
// prior.
#pragma once

#include <cmath>

#include "caffe/ops/each_element.hpp"

namespace caffe::ops {

// A row of the operand `choices` says what a box has to learn.
enum BoxChoice : int64_t {
  kClass,  // its class, or -1 for a box that learns nothing
  // It learns the location of this class, or 0 if all classes share one; -1 for none.
  kLocation,
  kCodes,  // that location in 4 numbers, from here on
  kChoices = kCodes + 4
};

// Base of the ops below. Losses of classes: softmax with cross entropy, or the sum of one sigmoid's
// for each class.
struct BoxOp {
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  int64_t classes = 0;
  bool is_softmax = true;

  BoxOp(int64_t classes, bool is_softmax) : classes(classes), is_softmax(is_softmax) {}

  template <typename A, typename Scores>
  CAFFE_HOST_DEVICE inline A Largest(const Scores& scores, int64_t box) const {
    A largest = scores[box * classes];
    for (int64_t c = 1; c < classes; ++c) {
      const A x = scores[box * classes + c];
      largest = x > largest ? x : largest;
    }
    return largest;
  }
  template <typename A, typename Scores>
  CAFFE_HOST_DEVICE inline A SumOfPowers(const Scores& scores, int64_t box, A largest) const {
    A sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(A(scores[box * classes + c]) - largest);
    return sum;
  }
  template <typename A, typename Scores>
  CAFFE_HOST_DEVICE inline A ClassLoss(const Scores& scores, int64_t box, int64_t label) const {
    if (is_softmax) {
      const A largest = Largest<A>(scores, box);
      return std::log(SumOfPowers<A>(scores, box, largest)) + largest -
             A(scores[box * classes + label]);
    }
    A loss = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const A x = scores[box * classes + c];
      loss += std::log1p(std::exp(-std::abs(x))) - x * (A(c == label) - A(x >= 0));
    }
    return loss;
  }
};

// (scores) -> (terms):  each box's loss if it had to learn the class `label`.
struct BoxClassLosses : BoxOp {
  static constexpr std::string_view kName = "BoxClassLosses";
  static constexpr int kInputs = 1;
  int64_t label = 0;

  BoxClassLosses(int64_t classes, bool is_softmax, int64_t label)
      : BoxOp(classes, is_softmax), label(label) {}

  template <typename A, typename Scores>
  CAFFE_HOST_DEVICE inline A Element(int64_t box, const Scores& scores) const {
    return ClassLoss<A>(scores, box, label);
  }
};

// (scores, choices, divisor, dloss) -> (dscores)
struct BoxScoresGrad : BoxOp {
  static constexpr std::string_view kName = "BoxScoresGrad";
  static constexpr OperandSet kExactInputs = {1};
  static constexpr int kInputs = 4;
  using BoxOp::BoxOp;

  template <typename A, typename Scores, typename Choices, typename Divisor, typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Scores& scores, const Choices& choices,
                                     const Divisor& divisor, const Dloss& dloss) const {
    const int64_t box = i / classes;
    const auto label = static_cast<int64_t>(choices[box * kChoices + kClass]);
    if (label < 0) return A(0);
    const A x = scores[i];
    A p;
    if (is_softmax) {
      const A largest = Largest<A>(scores, box);
      p = std::exp(x - largest) / SumOfPowers<A>(scores, box, largest);
    } else {
      p = A(0.5) * std::tanh(A(0.5) * x) + A(0.5);
    }
    return A(dloss[0]) / A(divisor[0]) * (p - A(i % classes == label));
  }
};

// Locations are 4 numbers. They are compared as they are, or, with `by_variance`, divided by the
// prior box's variances, which are the second half of the operand `priors`. The gradient leaves the
// factor 1 / variance out, as in SSD's Caffe and NVCaffe: with it the learning rates of their
// recipes would be 5 to 10 times too high for locations.
struct BoxLocations {
  int64_t priors = 0;
  int64_t locations = 1;  // of a box: one, or one for each class
  bool by_variance = false;
  bool is_square = false;  // half the square, otherwise smooth L1 (Girshick 2015, "Fast R-CNN")
  double weight = 1;

  // `at`: of loc; `k`: which of the box's 4 numbers.
  template <typename A, typename Loc, typename Choices, typename Priors>
  CAFFE_HOST_DEVICE inline A Difference(const Loc& loc, int64_t at, const Choices& choices,
                                        const Priors& of_priors, int64_t box, int64_t k) const {
    const A d = A(loc[at]) - A(choices[box * kChoices + kCodes + k]);
    return by_variance ? d / A(of_priors[(priors + box % priors) * 4 + k]) : d;
  }
  template <typename A>
  CAFFE_HOST_DEVICE inline bool IsSquare(A d) const {
    return is_square || std::abs(d) < 1;
  }
};

// (scores, choices, loc, priors) -> (terms):  each box's loss, 0 if it learns nothing.
struct BoxLosses : BoxOp {
  static constexpr std::string_view kName = "BoxLosses";
  static constexpr OperandSet kExactInputs = {1, 3};
  static constexpr int kInputs = 4;
  BoxLocations of;

  BoxLosses(int64_t classes, bool is_softmax, const BoxLocations& of)
      : BoxOp(classes, is_softmax), of(of) {}

  template <typename A, typename Scores, typename Choices, typename Loc, typename Priors>
  CAFFE_HOST_DEVICE inline A Element(int64_t box, const Scores& scores, const Choices& choices,
                                     const Loc& loc, const Priors& priors) const {
    const auto label = static_cast<int64_t>(choices[box * kChoices + kClass]);
    const auto location = static_cast<int64_t>(choices[box * kChoices + kLocation]);
    A loss = 0;
    for (int64_t k = 0; k < 4 && location >= 0; ++k) {
      const A d =
          of.Difference<A>(loc, (box * of.locations + location) * 4 + k, choices, priors, box, k);
      loss += A(of.weight) * (of.IsSquare(d) ? d * d / 2 : std::abs(d) - A(0.5));
    }
    return label < 0 ? loss : loss + ClassLoss<A>(scores, box, label);
  }
};

// (loc, choices, priors, divisor, dloss) -> (dloc)
struct BoxLocationsGrad {
  static constexpr std::string_view kName = "BoxLocationsGrad";
  static constexpr NumericRule kNumericRule = NumericRule::kAsStored;
  static constexpr OperandSet kExactInputs = {1, 2};
  static constexpr int kInputs = 5;
  BoxLocations of;

  template <typename A, typename Loc, typename Choices, typename Priors, typename Divisor,
            typename Dloss>
  CAFFE_HOST_DEVICE inline A Element(int64_t i, const Loc& loc, const Choices& choices,
                                     const Priors& priors, const Divisor& divisor,
                                     const Dloss& dloss) const {
    const int64_t box = i / (4 * of.locations), location = i / 4 % of.locations;
    if (A(choices[box * kChoices + kLocation]) != A(location)) return A(0);
    const A d = of.Difference<A>(loc, i, choices, priors, box, i % 4);
    const A slope = of.IsSquare(d) ? d : d / std::abs(d);  // NaN stays NaN
    return A(of.weight) * A(dloss[0]) / A(divisor[0]) * slope;
  }
};

}  // namespace caffe::ops
