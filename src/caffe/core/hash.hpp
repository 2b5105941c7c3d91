// A hash for telling different contents apart, where nobody makes them alike on purpose.
#pragma once

#include <cstdint>
#include <string_view>

namespace caffe {

// FNV-1a of 64 bits. `begin`: the hash of what comes before.
inline uint64_t Hash64(std::string_view bytes, uint64_t begin = 14695981039346656037u) {
  uint64_t hash = begin;
  for (const char one : bytes) hash = (hash ^ static_cast<unsigned char>(one)) * 1099511628211u;
  return hash;
}

}  // namespace caffe
