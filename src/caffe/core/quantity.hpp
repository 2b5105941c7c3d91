// Numbers with a unit, as flags give them.
#pragma once

#include <string>

#include "caffe/export.hpp"

namespace caffe {

// "50GB/s" (bytes) or "400Gb/s" (bits), in bytes per second; K, M, G and T are powers of 1000.
// Throws InvalidArgument, with `name` in front, where there is no number or no unit, or the number
// is not positive and finite.
CAFFE_EXPORT double ParseBandwidth(const std::string& name, const std::string& text);

// "5us", "0.2ms", in seconds. Throws InvalidArgument as above; 0 is a duration.
CAFFE_EXPORT double ParseDuration(const std::string& name, const std::string& text);

}  // namespace caffe
