// The same type as in good.cpp.
#include "tests/plugins/doubling.hpp"

CAFFE_PLUGIN("again", "1.0");
REGISTER_LAYER_CLASS(Doubling);
