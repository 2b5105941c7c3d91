// Cases of gradients that gradient_check_test.cpp checks. Each file gradients_of_*_test.cpp
// registers its own.
#pragma once

#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "caffe/device/device.hpp"
#include "caffe/error.hpp"

namespace caffe {

struct GradientCase {
  std::string name;
  std::string inputs;  // "2x3x4x5 2x3" for x0, x1
  std::string layers;  // reads x0, x1, ...
  // Inputs are drawn from [low, high), at least `gap` away from 0.
  double low = -1, high = 1, gap = 0;
  std::string
      constant_inputs;  // not differentiated: labels (drawn as whole numbers below `classes`)
  int classes = 3;
  std::vector<double> constants;  // values of the first constant input instead
  bool is_distinct = false;       // inputs are a shuffle of well separated numbers
  bool is_test_phase = false;
  double tolerance = 1e-6;
  DeviceKind device = DeviceKind::kCpu;
};

inline void PrintTo(const GradientCase& test, std::ostream* out) {
  *out << test.name;
}

// A case of one layer with one bottom.
inline GradientCase Layer1(std::string name, std::string shape, std::string type,
                           std::string options) {
  return {std::move(name), std::move(shape),
          "layer { name: 'l' type: '" + type + "' bottom: 'x0' top: 'y' " + options + " }"};
}

inline constexpr char kGaussian[] =
    "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'gaussian' std: 0.5 } ";
inline constexpr char kFiller[] = "filler { type: 'uniform' min: 0.5 max: 1.5 } ";

inline std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The cases of one kind of layers. References to them hold until the next one comes.
struct GradientCaseList {
  std::vector<GradientCase> cases;

  GradientCase& operator()(GradientCase test) { return cases.emplace_back(std::move(test)); }

  // A case of a loss of these inputs and constants.
  GradientCase& Loss(const std::string& name, const std::string& type, const std::string& inputs,
                     const std::string& constants, const std::string& options) {
    std::string bottoms;
    for (size_t i = 0; i < Words(inputs).size(); ++i) bottoms += StrCat("bottom: 'x", i, "' ");
    for (size_t i = 0; i < Words(constants).size(); ++i) bottoms += StrCat("bottom: 'c", i, "' ");
    GradientCase& test = (*this)({name, inputs,
                                  StrCat("layer { name: 'l' type: '", type, "' ", bottoms,
                                         "top: 'y' loss_weight: 2 ", options, " }")});
    test.constant_inputs = constants;
    return test;
  }
};

// Registers a function that adds the cases of one kind of layers:
//
//   const GradientCases losses("losses", LossGradients);
class GradientCases {
 public:
  using Adds = void (*)(GradientCaseList& add);
  GradientCases(const std::string& kind, Adds add) { Kinds()[kind] = add; }

  // The cases of all kinds.
  static std::vector<GradientCase> All() {
    GradientCaseList all;
    for (const auto& [kind, add] : Kinds()) add(all);
    return std::move(all.cases);
  }

 private:
  static std::map<std::string, Adds>& Kinds() {
    static std::map<std::string, Adds> kinds;
    return kinds;
  }
};

}  // namespace caffe
