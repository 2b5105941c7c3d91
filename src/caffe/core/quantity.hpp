// Parses numbers with units, as in command-line flags.
#pragma once

#include <string>

#include "caffe/export.hpp"

namespace caffe {

// Parses "50GB/s" (bytes) or "400Gb/s" (bits) into bytes per second; K, M, G and T are powers of
// 1000. Throws InvalidArgument, prefixed with `name`, if the number or the unit is missing, or the
// number is not positive and finite.
CAFFE_EXPORT double ParseBandwidth(const std::string& name, const std::string& text);

// Parses "5us" or "0.2ms" into seconds. Throws InvalidArgument as above, but accepts 0.
CAFFE_EXPORT double ParseDuration(const std::string& name, const std::string& text);

}  // namespace caffe
