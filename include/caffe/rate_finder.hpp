// The learning-rate range test: which rate to begin with.
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
  // Weight of the past in the exponential mean of the losses, 0 to less than 1.
  double smoothing = 0.9;
  // The test ends when the smoothed loss is so many times its minimum; more than 1.
  double divergence = 4;
};

struct RateTestPoint {
  int iteration = 0;
  double rate = 0;
  double loss = 0;
  double smoothed_loss = 0;  // (1 - s) * sum of s^k * loss k iterations before, over 1 - s^n
};

struct RateTest {
  std::vector<RateTestPoint> points;  // one an iteration
  // Whether the test ended because the loss grew or was not a number.
  bool has_diverged = false;
  // Index of the point with the smallest smoothed loss.
  size_t minimum = 0;
  // Index of the point where the smoothed loss falls most for its rate; none where it never falls.
  std::optional<size_t> steepest;

  // The rate at that point: base_lr to begin with. Throws nothing; 0 without one.
  double suggestion() const { return steepest ? points[*steepest].rate : 0; }
};

// Trains a copy of the solver's net while the rate rises exponentially from iteration to iteration
// (Smith 2017, arXiv 1506.01186). Of the solver it takes net, data, optimizer, weights and batch;
// it tests nothing, writes no file, and the solver of `param` is not changed. Throws what training
// does, and InvalidArgument for options that cannot be.
CAFFE_EXPORT RateTest FindRate(const SolverParameter& param, const SolverOptions& options,
                               const RateTestOptions& test = {});

// A table of some points with a bar for each smoothed loss, and what follows from it.
CAFFE_EXPORT std::string FormatRateTest(const RateTest& test);
CAFFE_EXPORT std::string FormatRateTestJson(const RateTest& test);
// The curve as a picture: an SVG document of 720 x 400 pixels, rates on a logarithmic axis.
CAFFE_EXPORT std::string FormatRateTestSvg(const RateTest& test);

}  // namespace caffe
