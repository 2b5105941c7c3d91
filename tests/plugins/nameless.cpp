// A plug-in without CAFFE_PLUGIN.
#include "tests/plugins/doubling.hpp"

namespace {
using NamelessLayer = DoublingLayer;
REGISTER_LAYER_CLASS(Nameless);
}  // namespace
