#include "tests/plugins/doubling.hpp"

CAFFE_PLUGIN("good", "1.5");
REGISTER_LAYER_CLASS(Doubling);
