// This machine's name.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace caffe {

// Returns "unknown" if the system does not tell.
inline std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace caffe
