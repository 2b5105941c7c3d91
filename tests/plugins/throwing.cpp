#include "tests/plugins/doubling.hpp"

CAFFE_PLUGIN("throwing", "1.0");

namespace {
using ThrowingLayer = DoublingLayer;
REGISTER_LAYER_CLASS(Throwing);
const bool thrown = [] {
  throw std::runtime_error("no licence was found");
  return true;
}();
}  // namespace
