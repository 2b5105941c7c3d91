// One run of a random net: what it computed, by name.
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
  // Relative noise on the inputs, the parameters and whatever a layer makes, and the noise's seed:
  // what rounding to a type of this precision would do. Keep-all nets only.
  double noise = 0;
  // Added to that: the spacing of the type's smallest numbers.
  double absolute_noise = 0;
  // Adds noise to what backward reads as well: it is rounded on its own where its type is narrower.
  bool rounds_again = false;
  uint64_t noise_seed = 0;
  // Gradients of each pass replace those of the one before.
  bool starts_anew = false;
  // Runs another batch size before each pass; starts anew, too.
  bool reshape = false;
};

struct RunResult {
  Numbers numbers;
  std::string refusal;  // the user's error that the library answered with
  std::string failure;  // anything else that it threw
  std::string plan;     // the compiled graph as text
  int64_t peak = 0;     // bytes that the plan takes
};

RunResult RunNet(const NetParameter& definition, const RunOptions& options);

// Bytes that plans of the net take: first the usual one, then those that recompute activations.
std::vector<int64_t> PeaksOfPlans(const NetParameter& definition);

// Gives the blobs of a net's inputs their numbers for this pass.
void FillInputs(Net& net, uint64_t pass);
// Gives BatchNorm layers statistics of a net that was trained; fillers leave a variance of 0.
void FillStatistics(Net& net);

// Largest relative spacing of the numbers of the types that the net asks for, and of their smallest
// ones.
struct TypePrecision {
  double relative = 0, smallest = 0;
  bool may_overflow = false;  // FLOAT16
  // Some layer computes its gradient in a type with fewer bits than its result.
  bool narrows_backward = false;
};
TypePrecision PrecisionOf(const NetParameter& net);

// The net in one type, whatever it asks for.
NetParameter InType(NetParameter net, Type type);

}  // namespace caffe::fuzz
