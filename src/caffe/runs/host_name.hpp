// The name of this machine.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace caffe::runs {

inline std::string HostName() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name[0] == '\0' ? "localhost" : name.data();
}

}  // namespace caffe::runs
