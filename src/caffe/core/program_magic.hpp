// The first bytes of a compiled program's file (runtime/program_file.hpp).
#pragma once

#include <string_view>

namespace caffe {

inline constexpr std::string_view kProgramMagic{
    "\x89"
    "cortado\r\n\x1a\n\0\0\0\0",
    16};

}  // namespace caffe
