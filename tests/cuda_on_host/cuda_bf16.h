// The type of CUDA's bfloat16 numbers.
#pragma once

#include "caffe/dtype.hpp"

using __nv_bfloat16 = caffe::bfloat16;
