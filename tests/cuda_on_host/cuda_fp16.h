// The type of CUDA's half numbers.
#pragma once

#include "caffe/dtype.hpp"

using __half = caffe::float16;
