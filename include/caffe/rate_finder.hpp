// The learning-rate range test: finds an initial learning rate.
//
//   const RateTest test = FindRate(ReadSolverText("solver.prototxt"), {.file = "solver.prototxt"});
//   std::cout << FormatRateTest(test);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "caffe/export.hpp"
#include "caffe/proto/caffe.pb.h"
#include "caffe/solver.hpp"

namespace caffe {

struct RateTestOptions {
  int iterations = 100;                // at least 10
  double lowest = 1e-7, highest = 10;  // rates of the first and the last iteration
  // Weight of the previous losses in the exponential moving average; in [0, 1).
  double smoothing = 0.9;
  // The test ends when the smoothed loss exceeds its minimum by this factor; more than 1.
  double divergence = 4;
};

struct RateTestPoint {
  int iteration = 0;
  double rate = 0;
  double loss = 0;
  double smoothed_loss = 0;  // (1 - s) * sum of s^k * loss k iterations before, over 1 - s^n
};

struct RateTest {
  std::vector<RateTestPoint> points;  // one per iteration
  // True if the test ended because the loss grew or was not finite.
  bool has_diverged = false;
  // Index of the point with the smallest smoothed loss.
  size_t minimum = 0;
  // Index of the point with the steepest fall of the smoothed loss; empty if the loss never falls.
  std::optional<size_t> steepest;

  // The rate at the steepest point, as a value for base_lr; 0 if there is none. Does not throw.
  double suggestion() const { return steepest ? points[*steepest].rate : 0; }
};

// Trains a copy of the solver's net while the learning rate rises exponentially (Smith 2017, arXiv
// 1506.01186). Uses the solver's net, data, optimizer, weights and batch size; runs no tests,
// writes no files, and leaves `param` unchanged. Throws what training throws, and InvalidArgument
// for invalid options.
CAFFE_EXPORT RateTest FindRate(const SolverParameter& param, const SolverOptions& options,
                               const RateTestOptions& test = {});

// A table of some points with a bar for each smoothed loss, and the suggested rate.
CAFFE_EXPORT std::string FormatRateTest(const RateTest& test);
CAFFE_EXPORT std::string FormatRateTestJson(const RateTest& test);
// The curve as an SVG document of 720 x 400 pixels, with a logarithmic axis of rates.
CAFFE_EXPORT std::string FormatRateTestSvg(const RateTest& test);

}  // namespace caffe
