// Numbers as text.
#pragma once

#include <iomanip>
#include <sstream>
#include <string>

#include "../common.hpp"

CAFFE_BVLC_BEGIN
// With leading zeros.
inline string format_int(int n, int number_of_leading_zeros = 0) {
  std::ostringstream text;
  text << std::setw(number_of_leading_zeros) << std::setfill('0') << n;
  return text.str();
}

CAFFE_BVLC_END
