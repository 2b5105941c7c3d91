// Has one new type and one that the library already has.
#include "tests/plugins/doubling.hpp"

CAFFE_PLUGIN("taken", "1.0");

namespace {
using NewLayer = DoublingLayer;
using ReLULayer = DoublingLayer;
REGISTER_LAYER_CLASS(New);
REGISTER_LAYER_CLASS(ReLU);
}  // namespace
