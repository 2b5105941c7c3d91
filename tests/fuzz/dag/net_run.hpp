// One run of a random net: its results, by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "caffe/net.hpp"

namespace caffe::fuzz {

// Numbers of a run: "1 data y3" is blob y3 after pass 1, "1 diff l2.0" a parameter's gradient.
using Numbers = std::map<std::string, std::vector<double>>;

struct RunOptions {
  NetOptions net;
  int passes = 2;
  // Relative noise on the inputs, the parameters and each layer's results, and the noise's seed. It
  // simulates rounding to a type of this precision. Keep-all nets only.
  double noise = 0;
  // Added to that: the spacing of the type's smallest numbers.
  double absolute_noise = 0;
  // Also adds noise to the values that backward reads: they are rounded separately if its type is
  // narrower.
  bool rounds_again = false;
  uint64_t noise_seed = 0;
  // Gradients of each pass replace those of the previous one.
  bool starts_anew = false;
  // Runs another batch size before each pass; gradients also start again from 0.
  bool reshape = false;
};

struct RunResult {
  Numbers numbers;
  std::string refusal;  // the library's user error
  std::string failure;  // anything else that it threw
  std::string plan;     // the compiled graph as text
  int64_t peak = 0;     // bytes that the plan takes
};

RunResult RunNet(const NetParameter& definition, const RunOptions& options);

// Bytes of the net's plans: first the usual one, then those that recompute activations.
std::vector<int64_t> PeaksOfPlans(const NetParameter& definition);

// Fills the blobs of a net's inputs for this pass.
void FillInputs(Net& net, uint64_t pass);
// Gives BatchNorm layers the statistics of a trained net; fillers leave a variance of 0.
void FillStatistics(Net& net);

// The largest relative spacing of numbers in the types that the net uses, and the spacing of their
// smallest numbers.
struct TypePrecision {
  double relative = 0, smallest = 0;
  bool may_overflow = false;  // FLOAT16
  // True if some layer computes its gradient in a type with fewer bits than its result.
  bool narrows_backward = false;
};
TypePrecision PrecisionOf(const NetParameter& net);

// The net in one type, regardless of the types that it sets.
NetParameter InType(NetParameter net, Type type);

}  // namespace caffe::fuzz
