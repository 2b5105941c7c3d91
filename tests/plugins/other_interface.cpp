// Compiled for an interface that this library does not have.
#include "tests/plugins/doubling.hpp"

extern "C" CAFFE_EXPORT const CaffePlugin caffe_plugin;
const CaffePlugin caffe_plugin = {sizeof(CaffePlugin), 99, "9.9.9", "other", "1.0"};

namespace {
using OtherLayer = DoublingLayer;
REGISTER_LAYER_CLASS(Other);
}  // namespace
