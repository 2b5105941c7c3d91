// Options that a layer refuses, and the expected message.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>
#include <sstream>
#include <string>

#include "caffe/error.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/net_of.hpp"

namespace caffe::testing {

struct WrongOptions {
  std::string type;
  std::string bottoms;  // shapes, "2x3 2x4"
  std::string options;  // text of the layer except its name, type, bottoms and top
  std::string message;  // a part of it
};

inline void PrintTo(const WrongOptions& test, std::ostream* out) {
  *out << test.type << " " << test.options;
}

// The text of a net with Input layers and the layer under test.
inline std::string NetTextOf(const WrongOptions& test) {
  std::string inputs, bottoms, shape;
  std::istringstream words(test.bottoms);
  for (int i = 0; words >> shape; ++i) {
    const std::string name = "x" + std::to_string(i);
    std::string dim, dims;
    std::istringstream numbers(shape);
    while (std::getline(numbers, dim, 'x')) dims += "dim: " + dim + " ";
    inputs += "layer { name: '" + name + "' type: 'Input' top: '" + name +
              "' input_param { shape { " + dims + "} } } ";
    bottoms += "bottom: '" + name + "' ";
  }
  return inputs + "layer { name: 'the_layer' type: '" + test.type + "' " + bottoms + "top: 'y' " +
         test.options + " }";
}

// Expects one line that names the layer and contains the message. Nothing is allocated for the net.
inline void ExpectRefused(const WrongOptions& test) {
  const std::string text = ErrorText<InvalidArgument>(
      [&] { Net(ParseNet(NetTextOf(test)), {.keep_all = false, .allocate = false}); });
  EXPECT_THAT(text,
              ::testing::AllOf(::testing::HasSubstr("the_layer"), ::testing::HasSubstr(test.type),
                               ::testing::HasSubstr(test.message),
                               ::testing::Not(::testing::HasSubstr("\n"))));
}

}  // namespace caffe::testing
